//! Batches over HTTP, in sessions of the revision that has them.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderMap, Response, StatusCode, request::Parts};
use http_body_util::BodyExt as _;

use super::{
    body::{RequestPermits, ResponseBody, ResponseEnd, charge},
    endpoint::HttpEndpoint,
    headers,
    post::Post,
    reply::{self, HttpRefusal},
};
use crate::{
    Caller, Carrier, Context, Era, batch, context::HttpRequest, dispatch::ConcurrencyPolicy,
    envelope::Envelope, observation::Observation, request::PlainRequest, sdk::answer,
};

impl HttpEndpoint {
    /// Whether the client may send a batch.
    pub(super) fn takes_batches(headers: &HeaderMap, permits: &RequestPermits) -> bool {
        let session = permits.session.as_ref();
        headers::are_plain_in_session(headers)
            && batch::is_agreed(session.map(|session| session.client.as_ref()))
    }

    /// Carries out the messages of a batch concurrently, and answers with one array.
    pub(super) async fn post_batch(
        &self,
        mut parts: Parts,
        members: Vec<&[u8]>,
        caller: Arc<Caller>,
        mut permits: RequestPermits,
    ) -> Result<Response<ResponseBody>, HttpRefusal> {
        let caller = if caller.is_over() {
            self.reauthenticate(&mut parts, &mut permits).await?
        } else {
            caller
        };
        // Not earlier: if the whole batch is refused, it is observed as one message.
        if let Some(observation) = parts.extensions.remove::<Arc<Observation>>() {
            observation.discard();
        }
        let members = members.into_iter();
        let answers = members.map(|member| self.member(&parts, member, &caller));
        let answers: Vec<Bytes> = join_all(answers).await.into_iter().flatten().collect();
        if answers.is_empty() {
            return Ok(reply::accepted());
        }
        Ok(reply::message(batch::joined(&answers), permits))
    }

    /// Carries out one message of a batch; returns its answer, if it has one.
    async fn member(&self, parts: &Parts, member: &[u8], caller: &Arc<Caller>) -> Option<Bytes> {
        let envelope = Envelope::parse(member);
        let mut parts = parts.clone();
        let observation = self.shared.observe(Carrier::Http, Some(Era::Session));
        if let Some(observation) = &observation {
            observation.set_caller(caller);
            observation.set_message(&envelope);
            parts.extensions.insert(Arc::clone(observation));
        }
        let mut response = self.member_response(parts, member, &envelope, caller).await;
        if let Some(observation) = &observation {
            observation.responded(response.status());
            if let Err(error) = observation.recorded().await {
                let unrecorded = reply::error(StatusCode::OK, &error, &observation.id());
                return collected(unrecorded).await;
            }
            response = reply::with_meta(response, observation.take_added());
        }
        if envelope.is_one_way() {
            return None;
        }
        collected(response).await
    }

    async fn member_response(
        &self,
        parts: Parts,
        member: &[u8],
        envelope: &Envelope<'_>,
        caller: &Arc<Caller>,
    ) -> Response<ResponseBody> {
        let observation = parts.extensions.get::<Arc<Observation>>().cloned();
        let end = ResponseEnd::Answered;
        let entered = self.enter_session(&parts.headers, Era::Session, caller);
        let permits = entered.and_then(|it| self.acquire_permits(it, end, caller));
        let mut permits = match permits {
            Ok(permits) => permits,
            Err(refused) => return refused.into(),
        };
        if let (Some(observation), Some(session)) = (&observation, &permits.session) {
            observation.set_session(&session.client);
        }
        if let Err(exceeded) = charge(caller, end, &mut permits).await
            && !envelope.is_one_way()
        {
            return self.refuse_over_budget(exceeded, envelope, observation.as_deref());
        }
        let message = Bytes::copy_from_slice(member);
        let post = Post {
            parts,
            message: &message,
            envelope,
            caller: Arc::clone(caller),
            permits,
        };
        self.carry_member(post).await
    }

    async fn carry_member(&self, post: Post<'_>) -> Response<ResponseBody> {
        if post.envelope.is_one_way() {
            let is_taken = post.envelope.is_notification() && self.take_notification(&post).await;
            return if is_taken {
                reply::accepted()
            } else {
                self.hand_over(post).await
            };
        }
        if post.envelope.is_plain()
            && post.envelope.era() == Some(Era::Session)
            && let Some(answer) = self.cached_list(&post)
        {
            return reply::json(StatusCode::OK, answer);
        }
        if let Some(refused) = self.refuse(&post) {
            return refused;
        }
        let plain = PlainRequest::from_envelope(post.envelope);
        let plain = plain.filter(|plain| plain.era == Era::Session);
        let begun = plain.and_then(|plain| {
            let session = post.permits.session.as_ref()?;
            let call = session.client.calls.begin(&plain.id)?;
            Some((plain, call, Arc::clone(&session.client)))
        });
        let Some((plain, call, client)) = begun else {
            let error = batch::not_in_batch();
            return reply::error(StatusCode::BAD_REQUEST, &error, &post.envelope.id);
        };
        let http = HttpRequest {
            era: plain.era,
            meta: plain.meta,
            parts: Arc::new(post.parts),
            cancelled: call.cancelled.clone(),
            link: None,
        };
        let context = Context::from_http(post.caller, Some(client), http);
        let dispatched = self
            .shared
            .dispatch(plain.request, context, ConcurrencyPolicy::AlreadyAcquired)
            .await;
        if call.cancelled.is_cancelled() {
            return reply::unanswered();
        }
        reply::message(answer::write(dispatched, call.id.clone()), post.permits)
    }
}

/// Collects the body of a response; `None` if it is empty.
async fn collected(response: Response<ResponseBody>) -> Option<Bytes> {
    let body = match response.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    (!body.is_empty()).then_some(body)
}
