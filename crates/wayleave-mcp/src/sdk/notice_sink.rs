//! The destination of a listener's notices: a session's own channel, or one `subscriptions/listen`
//! stream.

use rmcp::{
    model::ResourceUpdatedNotificationParam,
    service::{Peer, RoleServer, SubscriptionSendError, SubscriptionSink},
};

use crate::listeners::Notice;

/// The client can no longer be reached.
pub(crate) struct SinkClosed;

pub(crate) enum NoticeSink {
    Session(Peer<RoleServer>),
    Stream(SubscriptionSink),
}

impl NoticeSink {
    pub(crate) async fn send(&self, notice: Notice) -> Result<(), SinkClosed> {
        match self {
            Self::Session(peer) => to_session(peer, notice).await,
            Self::Stream(sink) => to_stream(sink, notice).await,
        }
    }
}

async fn to_session(peer: &Peer<RoleServer>, notice: Notice) -> Result<(), SinkClosed> {
    if notice.tools {
        peer.notify_tool_list_changed()
            .await
            .map_err(|_| SinkClosed)?;
    }
    if notice.resources {
        peer.notify_resource_list_changed()
            .await
            .map_err(|_| SinkClosed)?;
    }
    if notice.prompts {
        peer.notify_prompt_list_changed()
            .await
            .map_err(|_| SinkClosed)?;
    }
    for uri in notice.updated {
        let params = ResourceUpdatedNotificationParam::new(uri.to_string());
        peer.notify_resource_updated(params)
            .await
            .map_err(|_| SinkClosed)?;
    }
    Ok(())
}

async fn to_stream(sink: &SubscriptionSink, notice: Notice) -> Result<(), SinkClosed> {
    if notice.tools {
        wanted(&sink.notify_tool_list_changed().await)?;
    }
    if notice.resources {
        wanted(&sink.notify_resource_list_changed().await)?;
    }
    if notice.prompts {
        wanted(&sink.notify_prompt_list_changed().await)?;
    }
    for uri in notice.updated {
        wanted(&sink.notify_resource_updated(uri.to_string()).await)?;
    }
    Ok(())
}

/// Treats a kind of notice that the stream did not ask for as sent, not as a broken stream.
fn wanted(sent: &Result<(), SubscriptionSendError>) -> Result<(), SinkClosed> {
    match sent {
        Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => Ok(()),
        Err(_) => Err(SinkClosed),
    }
}
