//! Adds up costs, calls, answers and waiting times in buckets: equal parts of a period.

use std::collections::HashSet;

use plexus_protocol::audit::SeriesBucket;
use plexus_protocol::claudecode::{AnsweredBy, Asked};
use plexus_protocol::{ApprovalStatus, AskedOf, SessionId, UnixSeconds};
use plexus_store::{ApprovalSpan, AuditFact, CallCount, EndedTurn, SessionParent};

use super::answered_by;
use super::waits::waits;

/// The sessions that are counted.
pub(crate) enum Counted {
    /// All of them.
    All,
    /// These.
    Of(HashSet<SessionId>),
}

impl Counted {
    /// A session and all below it, deleted ones included.
    pub(crate) fn subtree(top: SessionId, parents: &[SessionParent]) -> Self {
        let mut found = HashSet::from([top]);
        // A session is created after its parent, so one pass in this order finds all levels.
        for SessionParent { id, answers_to } in parents {
            if let AskedOf::Session { id: parent } = answers_to
                && found.contains(parent)
            {
                found.insert(*id);
            }
        }
        Self::Of(found)
    }

    fn has(&self, session: SessionId) -> bool {
        match self {
            Self::All => true,
            Self::Of(sessions) => sessions.contains(&session),
        }
    }
}

/// The buckets of a period, while they are filled.
pub(crate) struct Series {
    from: UnixSeconds,
    /// The end of the period, or the present if that is earlier.
    end: UnixSeconds,
    bucket_secs: u64,
    counted: Counted,
    buckets: Vec<SeriesBucket>,
}

impl Series {
    /// Creates empty buckets. The last one may end after `to`.
    pub(crate) fn new(
        from: UnixSeconds,
        to: UnixSeconds,
        now: UnixSeconds,
        buckets: u64,
        counted: Counted,
    ) -> Self {
        let bucket_secs = to.saturating_sub(from).div_ceil(buckets.max(1)).max(1);
        let count = to.saturating_sub(from).div_ceil(bucket_secs).max(1);
        let buckets =
            (0..count).map(|n| SeriesBucket { at: from + n * bucket_secs, ..SeriesBucket::default() });
        Self { from, end: to.min(now), bucket_secs, counted, buckets: buckets.collect() }
    }

    pub(crate) fn bucket_secs(&self) -> u64 {
        self.bucket_secs
    }

    pub(crate) fn buckets(self) -> Vec<SeriesBucket> {
        self.buckets
    }

    /// The whole cost of a turn counts at its end: Claude Code reports no earlier cost.
    pub(crate) fn add_turn(&mut self, turn: &EndedTurn) {
        let counts = self.counted.has(turn.session);
        if let Some(bucket) = self.bucket(turn.ended_at).filter(|_| counts) {
            bucket.turns += 1;
            bucket.cost_usd += turn.cost_usd;
        }
    }

    pub(crate) fn add_calls(&mut self, count: &CallCount) {
        let part = usize::try_from(count.part).unwrap_or(usize::MAX);
        let counts = self.counted.has(count.session);
        if let Some(bucket) = self.buckets.get_mut(part).filter(|_| counts) {
            bucket.calls += count.calls;
        }
    }

    pub(crate) fn add_fact(&mut self, fact: &AuditFact) {
        match fact {
            AuditFact::Gate { at, session, status } => {
                let counts = session.is_some_and(|session| self.counted.has(session));
                if let Some(bucket) = self.bucket(*at).filter(|_| counts) {
                    bucket.by_rule += 1;
                    add_status(bucket, *status);
                }
            }
            AuditFact::Decision(span) => {
                if let (true, Some(end)) = (self.counted.has(span.session), &span.resolved) {
                    if let Some(bucket) = self.bucket(end.at) {
                        match answered_by(&end.by, end.right) {
                            AnsweredBy::Rule => bucket.by_rule += 1,
                            AnsweredBy::Person => bucket.by_person += 1,
                            AnsweredBy::Agent => bucket.by_agent += 1,
                            AnsweredBy::Hub => {}
                        }
                        add_status(bucket, end.status);
                    }
                    self.add_waits(span);
                }
            }
        }
    }

    /// Counts the time that a pending approval has been open.
    pub(crate) fn add_open(&mut self, span: &ApprovalSpan) {
        if self.counted.has(span.session) {
            self.add_waits(span);
        }
    }

    fn add_waits(&mut self, span: &ApprovalSpan) {
        for wait in waits(span, self.end) {
            let (from, to) = (wait.from.max(self.from), wait.to.min(self.end));
            let mut at = from;
            while at < to {
                let next =
                    (at - self.from) / self.bucket_secs * self.bucket_secs + self.bucket_secs + self.from;
                let secs = next.min(to) - at;
                if let Some(bucket) = self.bucket(at) {
                    match wait.asked {
                        Asked::Person => bucket.waited_for_person_secs += secs,
                        Asked::Agent => bucket.waited_for_agent_secs += secs,
                    }
                }
                at = next;
            }
        }
    }

    fn bucket(&mut self, at: UnixSeconds) -> Option<&mut SeriesBucket> {
        let part = at.checked_sub(self.from)? / self.bucket_secs;
        self.buckets.get_mut(usize::try_from(part).ok()?)
    }
}

fn add_status(bucket: &mut SeriesBucket, status: ApprovalStatus) {
    match status {
        ApprovalStatus::Allowed => bucket.allowed += 1,
        ApprovalStatus::Denied => bucket.denied += 1,
        ApprovalStatus::Expired => bucket.expired += 1,
        ApprovalStatus::Withdrawn => bucket.withdrawn += 1,
        ApprovalStatus::Pending => {}
    }
}

#[cfg(test)]
mod tests {
    use plexus_protocol::{Decider, Right};
    use plexus_store::{SpanEnd, TurnStatus};

    use super::super::waits::tests::{agent, approval};
    use super::*;

    fn turn(session: SessionId, ended_at: u64, cost_usd: f64) -> EndedTurn {
        EndedTurn { session, turn: 1, status: TurnStatus::Complete, started_at: 0, ended_at, cost_usd }
    }

    #[test]
    fn answers_costs_and_calls_are_added_up_by_part() {
        let a = SessionId::random();
        let mut series = Series::new(100, 200, 1000, 10, Counted::All);
        assert_eq!(series.bucket_secs(), 10);
        for (at, cost) in [(99, 100.0), (100, 1.0), (109, 2.0), (110, 4.0), (199, 8.0), (200, 100.0)] {
            series.add_turn(&turn(a, at, cost));
        }
        series.add_calls(&CallCount { part: 1, session: a, calls: 7 });
        series.add_calls(&CallCount { part: 10, session: a, calls: 7 });
        let end = |at, status, by: Decider, right| {
            AuditFact::Decision(ApprovalSpan {
                resolved: Some(SpanEnd { at, status, by, right }),
                ..approval(a, at, &[], AskedOf::Operator, None)
            })
        };
        for fact in [
            AuditFact::Gate { at: 120, session: Some(a), status: ApprovalStatus::Allowed },
            AuditFact::Gate { at: 121, session: Some(a), status: ApprovalStatus::Denied },
            end(122, ApprovalStatus::Allowed, Decider::Operator, Right::Operator),
            end(123, ApprovalStatus::Allowed, Decider::Operator, Right::Rule),
            end(124, ApprovalStatus::Denied, Decider::Session { id: a }, Right::Ancestor),
            end(125, ApprovalStatus::Expired, Decider::Hub, Right::Expiry),
            end(126, ApprovalStatus::Withdrawn, Decider::Hub, Right::Withdrawal),
            end(99, ApprovalStatus::Allowed, Decider::Operator, Right::Operator),
        ] {
            series.add_fact(&fact);
        }
        let buckets = series.buckets();
        assert_eq!(
            buckets.iter().map(|bucket| bucket.at).collect::<Vec<_>>(),
            (100..200).step_by(10).collect::<Vec<_>>()
        );
        let costs: Vec<f64> = buckets.iter().map(|bucket| bucket.cost_usd).collect();
        assert_eq!(costs, [3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 8.0]);
        assert_eq!((buckets[0].turns, buckets[1].turns, buckets[1].calls), (2, 1, 7));
        let answers = &buckets[2];
        assert_eq!((answers.by_rule, answers.by_person, answers.by_agent), (3, 1, 1));
        assert_eq!((answers.allowed, answers.denied, answers.expired, answers.withdrawn), (3, 2, 1, 1));
    }

    #[test]
    fn waiting_time_is_divided_between_parts_and_addressees() {
        let a = SessionId::random();
        let mut series = Series::new(100, 130, 1000, 3, Counted::All);
        let spans = [
            approval(a, 95, &[(agent(), 105)], AskedOf::Operator, Some(125)),
            approval(a, 50, &[], AskedOf::Operator, Some(100)),
            approval(a, 118, &[], AskedOf::Operator, Some(500)),
        ];
        spans.into_iter().for_each(|span| series.add_fact(&AuditFact::Decision(span)));
        let buckets = series.buckets();
        let waited: Vec<(u64, u64)> = buckets
            .iter()
            .map(|bucket| (bucket.waited_for_person_secs, bucket.waited_for_agent_secs))
            .collect();
        assert_eq!(waited, [(5, 5), (12, 0), (15, 0)]);
        let mut series = Series::new(100, 130, 112, 3, Counted::All);
        series.add_open(&approval(a, 105, &[], AskedOf::Operator, None));
        let waited: Vec<u64> = series.buckets().iter().map(|bucket| bucket.waited_for_person_secs).collect();
        assert_eq!(waited, [5, 2, 0], "nothing waits in the future");
    }

    #[test]
    fn a_period_is_divided_into_at_most_the_requested_parts() {
        for (from, to, requested, secs, count) in
            [(0, 100, 10, 10, 10), (0, 100, 30, 4, 25), (0, 5, 10, 1, 5), (7, 8, 1, 1, 1), (0, 1, 1000, 1, 1)]
        {
            let series = Series::new(from, to, to, requested, Counted::All);
            assert_eq!((series.bucket_secs(), series.buckets().len()), (secs, count));
        }
    }

    #[test]
    fn only_a_session_and_those_below_it_are_counted() {
        let [a, b, c, other] = [(); 4].map(|()| SessionId::random());
        let below = |id, parent| SessionParent { id, answers_to: AskedOf::Session { id: parent } };
        let parents = [
            SessionParent { id: a, answers_to: AskedOf::Operator },
            below(b, a),
            below(other, other),
            below(c, b),
        ];
        let mut series = Series::new(0, 10, 10, 1, Counted::subtree(b, &parents));
        for (session, cost) in [(a, 1.0), (b, 2.0), (c, 4.0), (other, 8.0)] {
            series.add_turn(&turn(session, 5, cost));
        }
        assert_eq!(series.buckets()[0].cost_usd, 6.0);
    }
}
