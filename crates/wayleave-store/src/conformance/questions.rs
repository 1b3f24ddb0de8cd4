//! Questions as analysts ask them: paths, related records, computed fields, measures, conditions on
//! groups, and paging through groups. Each answer must equal the reference interpreter's.

mod draw;
mod names;

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::SourceKind;

use self::names::COMPUTED;
use super::fixture;
use super::run::{ConformanceError, Exclusion, Options, ServedMapping, Suite};
use super::seeded_rng::SeededRng;
use crate::Store;

/// Maximum number of pages read for a question.
const MAX_PAGES: usize = 4;

/// Counts of questions, and of what was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuestionsReport {
    /// Questions asked.
    pub questions: usize,
    /// Questions that policy refused before any store was read.
    pub refused: usize,
    /// Pages of records compared.
    pub pages: usize,
    /// Pages of groups compared.
    pub groups: usize,
    /// Pages of groups that had a next page.
    pub walked: usize,
    /// Questions that differed as an exclusion allows.
    pub excluded: usize,
}

/// Runs questions as analysts ask them over a store that holds [`fixture::rows`].
pub async fn run_questions(
    store: &dyn Store,
    options: Options,
    exclusions: &[Exclusion],
) -> Result<QuestionsReport, ConformanceError> {
    let kind: SourceKind = store.capabilities().kind;
    let served = ServedMapping::new(&(fixture::mapping(kind) + COMPUTED))?;
    let tables = fixture::rows();
    let suite = Suite::new(store, served, &tables);
    let mut question_suite = QuestionSuite {
        rng: SeededRng::new(options.seed),
        suite: &suite,
        report: QuestionsReport::default(),
    };
    let mut needed = vec![false; exclusions.len()];
    for _ in 0..options.requests {
        let samples = question_suite.rng.percent(55);
        let aggregates = question_suite.rng.percent(50);
        let question = question_suite.question(samples, aggregates);
        question_suite.report.questions += 1;
        let tool = if aggregates {
            "aggregate"
        } else {
            "query_records"
        };
        let asked = json!({tool: question});
        let outcome = if aggregates {
            question_suite.aggregate(question, &asked).await
        } else {
            question_suite.query(question, &asked).await
        };
        if let Err(error) = outcome {
            let excluded = exclusions.iter().position(|it| (it.applies)(&asked));
            match excluded.and_then(|index| needed.get_mut(index)) {
                Some(needed) => *needed = true,
                None => return Err(error),
            }
            question_suite.report.excluded += 1;
        }
    }
    let unneeded = exclusions.iter().zip(needed).find(|(_, needed)| !needed);
    if let Some((exclusion, _)) = unneeded {
        let reason = exclusion.reason;
        return Err(ConformanceError::Unneeded { reason });
    }
    let report = question_suite.report;
    if report.refused * 10 > report.questions {
        let reason = format!("policy refused too much: {report:?}");
        return Err(ConformanceError::Broken { reason });
    }
    Ok(report)
}

struct QuestionSuite<'s, 'a> {
    rng: SeededRng,
    suite: &'s Suite<'a>,
    report: QuestionsReport,
}

impl QuestionSuite<'_, '_> {
    async fn query(
        &mut self,
        mut question: Map<String, Json>,
        asked: &Json,
    ) -> Result<(), ConformanceError> {
        for _ in 0..MAX_PAGES {
            let Some(plan) = self.suite.served().query(&question) else {
                self.report.refused += 1;
                return Ok(());
            };
            let rows = self.suite.same("rows", plan.rows(), asked).await?;
            self.report.pages += 1;
            if let Some(count) = plan.count() {
                self.suite.same("counts", count, asked).await?;
            }
            let page = plan.page(&rows);
            let shown = page.records().len();
            match page.next_cursor(shown, self.suite.served().seal()) {
                Some(cursor) => question.insert("cursor".to_owned(), Json::String(cursor)),
                None => return Ok(()),
            };
        }
        Ok(())
    }

    async fn aggregate(
        &mut self,
        mut question: Map<String, Json>,
        asked: &Json,
    ) -> Result<(), ConformanceError> {
        for _ in 0..MAX_PAGES {
            let Some(plan) = self.suite.served().aggregate(&question) else {
                self.report.refused += 1;
                return Ok(());
            };
            let rows = self.suite.same("groups", plan.groups(), asked).await?;
            self.report.groups += 1;
            if let Some(totals) = plan.totals() {
                self.suite.same("totals", totals, asked).await?;
            }
            let (shown, more) = plan.answer(&rows);
            let cursor = shown
                .last()
                .filter(|_| more)
                .and_then(|last| plan.cursor(last, self.suite.served().seal()));
            match cursor {
                Some(cursor) => question.insert("cursor".to_owned(), Json::String(cursor)),
                None => return Ok(()),
            };
            self.report.walked += 1;
        }
        Ok(())
    }
}
