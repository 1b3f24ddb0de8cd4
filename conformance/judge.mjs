// Judges what the official suite left behind, more strictly than the suite does: its own baseline
// looks only at scored scenarios, so an unscored one could change either way unseen.
//
//   node judge.mjs EXPECTED.yml LABEL RESULTS SCORED [LABEL RESULTS SCORED ...]
//
// EXPECTED.yml lists what may fail; RESULTS is the suite's output folder; SCORED is a file with the
// names of the scenarios that must pass, one a line.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ENTRY = /^ {2}- ([\w./-]+)(?::([\w./-]+))? # \S/;

/** The expected failures: each `{ scenario, check? }`, with a reason on its line. */
function expectedFailures(file) {
  const entries = [];
  for (const [at, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (/^(#.*|server:\s*)?$/.test(line)) continue;
    const entry = ENTRY.exec(line);
    if (!entry) throw new Error(`${file}:${at + 1}: not "  - scenario[:check] # reason"`);
    entries.push({ name: line.slice(4, line.indexOf(' #')), scenario: entry[1], check: entry[2] });
  }
  return entries;
}

/** Scenario to its checks, from folders named `server-<scenario>-<time>`. */
function results(folder) {
  const found = new Map();
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const scenario = /^(?:server-)?(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/.exec(name)?.[1];
    const file = join(folder, name, 'checks.json');
    if (scenario && existsSync(file)) found.set(scenario, JSON.parse(readFileSync(file, 'utf8')));
  }
  return found;
}

const failed = (check) => check.status === 'FAILURE' || check.status === 'WARNING';
const passed = (check) => check.status === 'SUCCESS';

/** One run: prints its totals and returns what is wrong with it. */
function judge(label, ran, scored, expected, seen) {
  const faults = [];
  const totals = { scored: 0, other: 0, excused: 0, undecided: 0, checks: 0 };
  for (const scenario of scored) {
    if (!ran.has(scenario)) faults.push(`${scenario}: left no result`);
  }
  for (const [scenario, checks] of ran) {
    const whole = expected.find((entry) => entry.scenario === scenario && !entry.check);
    const named = expected.filter((entry) => entry.scenario === scenario && entry.check);
    for (const entry of [whole, ...named]) if (entry) seen.add(entry);
    if (whole && scored.has(scenario)) {
      faults.push(`${scenario}: is scored, so it may not be expected to fail`);
    }
    totals.checks += checks.filter(passed).length;

    const failures = checks.filter(failed);
    const excused = (check) => whole || named.some((entry) => entry.check === check.id);
    for (const check of failures.filter((check) => !excused(check))) {
      faults.push(`${scenario}: ${check.id}: ${check.errorMessage ?? check.status}`);
    }
    if (whole && failures.length === 0) faults.push(`${scenario}: passes now, take it off the list`);
    for (const { check } of named) {
      const same = checks.filter(({ id }) => id === check);
      if (same.some(passed) && !same.some(failed)) {
        faults.push(`${scenario}: ${check} passes now, take it off the list`);
      }
    }

    if (!failures.every(excused)) continue;
    if (whole) totals.excused += 1;
    else if (!checks.some(passed)) {
      totals.undecided += 1;
      if (scored.has(scenario)) faults.push(`${scenario}: decided nothing`);
    } else if (scored.has(scenario)) totals.scored += 1;
    else totals.other += 1;
  }
  console.log(
    `${label}: ${totals.scored}/${scored.size} scored scenarios pass, ${totals.checks} checks; ` +
      `not scored: ${totals.other} pass, ${totals.excused} fail as expected, ` +
      `${totals.undecided} decide nothing`,
  );
  return faults;
}

const [file, ...runs] = process.argv.slice(2);
const expected = expectedFailures(file);
const seen = new Set();
let wrong = 0;
for (let at = 0; at < runs.length; at += 3) {
  const [label, folder, list] = runs.slice(at, at + 3);
  const scored = new Set(readFileSync(list, 'utf8').split('\n').filter(Boolean));
  if (scored.size === 0) throw new Error(`${list} names no scenario`);
  for (const fault of judge(label, results(folder), scored, expected, seen)) {
    console.log(`  ✗ ${fault}`);
    wrong += 1;
  }
}
for (const entry of expected.filter((entry) => !seen.has(entry))) {
  console.log(`  ✗ ${file}: ${entry.name} was not run`);
  wrong += 1;
}
process.exit(wrong === 0 ? 0 : 1);
