// The judge, on results small enough to read. Run by scripts/conformance before it is trusted.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const JUDGE = new URL('judge.mjs', import.meta.url).pathname;

/** Judges scenarios given as `{ name: { check: status } }`; returns the faults, or null if none. */
function faults({ results, scored, expected = [] }) {
  const folder = mkdtempSync(join(tmpdir(), 'judge-'));
  try {
    for (const [scenario, checks] of Object.entries(results)) {
      const place = join(folder, 'out', `server-${scenario}-2026-01-02T03-04-05-678Z`);
      mkdirSync(place, { recursive: true });
      const list = Object.entries(checks).map(([id, status]) => ({ id, status }));
      writeFileSync(join(place, 'checks.json'), JSON.stringify(list));
    }
    writeFileSync(join(folder, 'scored'), scored.map((name) => `${name}\n`).join(''));
    const lines = expected.map((entry) => `  - ${entry}\n`).join('');
    writeFileSync(join(folder, 'expected.yml'), `# why\nserver:\n${lines}`);
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [JUDGE, 'expected.yml', 'run', 'out', 'scored'],
      { cwd: folder, encoding: 'utf8' },
    );
    if (status === 0) return null;
    return [...stdout.matchAll(/^ {2}✗ (.*)$/gm)].map((found) => found[1]).concat(stderr || []);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a scored scenario that passes is well', () => {
  assert.equal(faults({ results: { ping: { ping: 'SUCCESS' } }, scored: ['ping'] }), null);
});

test('a failure or a warning nobody expected is a fault, scored or not', () => {
  const results = { ping: { ping: 'SUCCESS', late: 'WARNING' }, tasks: { get: 'FAILURE' } };
  assert.deepEqual(faults({ results, scored: ['ping'] }), [
    'ping: late: WARNING',
    'tasks: get: FAILURE',
  ]);
});

test('an expected failure outside the score is excused', () => {
  const results = { ping: { ping: 'SUCCESS' }, tasks: { get: 'FAILURE' } };
  assert.equal(faults({ results, scored: ['ping'], expected: ['tasks # not offered'] }), null);
});

test('an expected failure that passes, or was not run, is a fault', () => {
  const results = { ping: { ping: 'SUCCESS' }, tasks: { get: 'SUCCESS' } };
  const expected = ['tasks # not offered', 'gone # not offered'];
  assert.deepEqual(faults({ results, scored: ['ping'], expected }), [
    'tasks: passes now, take it off the list',
    'expected.yml: gone was not run',
  ]);
});

test('a scored scenario may not be expected to fail as a whole', () => {
  const results = { ping: { ping: 'FAILURE' } };
  assert.deepEqual(faults({ results, scored: ['ping'], expected: ['ping # hard'] }), [
    'ping: is scored, so it may not be expected to fail',
  ]);
});

test('one check may be excused and the rest still count', () => {
  const results = { ping: { a: 'SUCCESS', b: 'FAILURE' } };
  assert.equal(faults({ results, scored: ['ping'], expected: ['ping:b # no tool'] }), null);
  assert.deepEqual(faults({ results, scored: ['ping'], expected: ['ping:a # no tool'] }), [
    'ping: b: FAILURE',
    'ping: a passes now, take it off the list',
  ]);
});

test('a scored scenario that left no result, or decided nothing, is a fault', () => {
  const results = { ping: { ping: 'SKIPPED' } };
  assert.deepEqual(faults({ results, scored: ['ping', 'pong'] }), [
    'pong: left no result',
    'ping: decided nothing',
  ]);
});

test('an expected failure needs a reason', () => {
  const results = { ping: { ping: 'SUCCESS' } };
  const [message] = faults({ results, scored: ['ping'], expected: ['tasks'] });
  assert.match(message, /expected\.yml:3: not "  - scenario\[:check\] # reason"/);
});
