//! A listener with a certificate.

use std::{io, net::SocketAddr, path::Path, process::Command, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;
use wayleave_project::{Project, source::EnvironmentVariables};
use wayleave_server::Deployment;

fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-batch",
        ])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success());
}

async fn deployment(folder: &Path, settings: &str) -> Deployment {
    std::fs::write(folder.join("wayleave.toml"), settings).unwrap();
    let project = Project::open(folder).unwrap();
    Deployment::open(&project, EnvironmentVariables::process())
        .await
        .unwrap()
}

const SETTINGS: &str =
    "[serve]\ntokens = true\n[serve.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n";

/// Connects over TLS; fails unless the server presents the certificate in this file.
async fn connected(address: SocketAddr, cert: &Path) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let cert = CertificateDer::from_pem_file(cert).unwrap();
    roots.add(cert).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

#[tokio::test]
async fn a_listener_with_a_certificate_speaks_tls_and_only_tls() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let deployment = deployment(folder.path(), SETTINGS).await;
    let http = deployment
        .bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = http.local_addr();
    assert_eq!(deployment.url(address), format!("https://{address}/mcp"));
    let stop = CancellationToken::new();
    let served = tokio::spawn(http.serve(stop.clone()));

    let expected = folder.path().join("cert.pem");
    let stream = connected(address, &expected).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = http::Request::post("/mcp").header("host", "localhost");
    let refused = sender
        .send_request(request.body(Empty::<Bytes>::new()).unwrap())
        .await
        .unwrap();
    assert_eq!(refused.status(), 401);
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap();
    assert!(
        challenge.contains("resource_metadata=\"https://localhost/"),
        "{challenge}"
    );
    drop(refused.into_body().collect().await);

    let stream = TcpStream::connect(address).await.unwrap();
    let (mut plain, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("/mcp")
        .body(Empty::<Bytes>::new())
        .unwrap();
    assert!(plain.send_request(request).await.is_err());
    drop((sender, plain));
    stop.cancel();
    served.await.unwrap();
    deployment.close().await;
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_at_once_and_one_that_cannot_be_used_is_not() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = tempfile::tempdir().unwrap();
    for place in [&old, &new] {
        certificate(place.path());
    }
    let put = |from: &Path, file: &str| {
        // Replaced atomically, as renewal programs do.
        std::fs::copy(from.join(file), folder.path().join("passing")).unwrap();
        std::fs::rename(folder.path().join("passing"), folder.path().join(file)).unwrap();
    };
    for file in ["cert.pem", "key.pem"] {
        put(old.path(), file);
    }
    let deployment = deployment(folder.path(), SETTINGS).await;
    let bound = deployment.bind("127.0.0.1:0".parse().unwrap()).await;
    let http = bound.unwrap();
    let address = http.local_addr();
    let stop = CancellationToken::new();
    let served = tokio::spawn(http.serve(stop.clone()));
    let shows = async |place: &Path| connected(address, &place.join("cert.pem")).await.is_ok();
    assert!(shows(old.path()).await && !shows(new.path()).await);

    // A half-finished renewal: the certificate without its key.
    put(new.path(), "cert.pem");
    assert!(shows(old.path()).await);
    put(new.path(), "key.pem");
    assert!(shows(new.path()).await && !shows(old.path()).await);
    // An invalid key, and then no certificate at all.
    std::fs::write(folder.path().join("key.pem"), "hush-hush").unwrap();
    assert!(shows(new.path()).await);
    std::fs::remove_file(folder.path().join("cert.pem")).unwrap();
    assert!(shows(new.path()).await);
    // The old files again, written in place.
    for file in ["cert.pem", "key.pem"] {
        std::fs::copy(old.path().join(file), folder.path().join(file)).unwrap();
    }
    assert!(shows(old.path()).await);
    stop.cancel();
    served.await.unwrap();
    deployment.close().await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_shown_is_named_and_its_key_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let deployment = deployment(folder.path(), SETTINGS).await;
    let address = "127.0.0.1:0".parse().unwrap();
    std::fs::write(folder.path().join("key.pem"), "hush-hush").unwrap();
    let error = deployment.bind(address).await.err().unwrap().to_string();
    assert!(
        error.contains("serve.tls.key") && !error.contains("hush"),
        "{error}"
    );
    std::fs::remove_file(folder.path().join("cert.pem")).unwrap();
    let error = deployment.bind(address).await.err().unwrap().to_string();
    assert!(error.contains("serve.tls.cert"), "{error}");
}

#[tokio::test]
async fn beyond_this_machine_nobody_is_served_without_being_asked_for_a_token() {
    let everywhere = "0.0.0.0:0".parse().unwrap();
    for (settings, starts) in [
        ("", false),
        ("[serve]\nanonymous = true\n", false),
        ("[serve]\nanonymous = true\ntokens = true\n", false),
        ("[serve]\ntokens = true\n", false),
        ("[serve]\ntokens = true\ntls_proxy = true\n", true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let deployment = deployment(folder.path(), settings).await;
        assert_eq!(
            deployment.bind(everywhere).await.is_ok(),
            starts,
            "{settings}"
        );
        deployment.close().await;
    }
}
