//! Sending data to a server that the user has named.

use std::io::Read as _;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// The most bytes of an answer that are read.
const MAX_ANSWER: u64 = 4 << 20;

/// How a server is reached. The texts are the contents of PEM files.
#[derive(Clone, Default)]
pub struct Connection {
    /// How long a request may take.
    pub timeout: Duration,
    /// The certificates that the server's is checked by; those of the system if `None`.
    pub roots: Option<Vec<u8>>,
    /// The client's certificates.
    pub certificate: Option<Vec<u8>>,
    /// The key of the client's certificate.
    pub key: Option<Vec<u8>>,
}

/// Sends requests. It follows no redirects, because they would lead credentials elsewhere.
#[derive(Clone, Debug)]
pub struct Sender(Agent);

/// An answer of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// The body, or its beginning.
    pub body: Vec<u8>,
}

/// Why there is no answer: the server cannot be reached, or the connection broke.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoAnswer(String);

/// A PEM file has nothing that is of use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PemError {
    /// No certificate.
    #[error("the file has no certificate in PEM")]
    NoCertificate,
    /// No key.
    #[error("the file has no private key in PEM")]
    NoKey,
}

impl Sender {
    /// A sender for one server.
    ///
    /// # Errors
    /// If a file has no certificate, or no key.
    pub fn new(connection: &Connection) -> Result<Self, PemError> {
        let roots = match &connection.roots {
            Some(pem) => RootCerts::from(certificates(pem)?),
            None => RootCerts::PlatformVerifier,
        };
        let client = match (&connection.certificate, &connection.key) {
            (Some(certificate), Some(key)) => {
                let key = PrivateKey::from_pem(key).map_err(|_| PemError::NoKey)?;
                Some(ClientCert::new_with_certs(&certificates(certificate)?, key))
            }
            _ => None,
        };
        let tls = TlsConfig::builder().root_certs(roots).client_cert(client).build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("nyquist/", env!("CARGO_PKG_VERSION")))
            .timeout_global(Some(connection.timeout))
            .build();
        Ok(Self(Agent::new_with_config(config)))
    }

    /// Posts a body.
    ///
    /// # Errors
    /// If there is no complete answer.
    pub fn post(&self, url: &str, headers: &[(String, String)], body: &[u8]) -> Result<Answer, NoAnswer> {
        let mut request = self.0.post(url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let response = request.send(body).map_err(|error| NoAnswer(error.to_string()))?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get("retry-after");
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut body = Vec::new();
        let reader = response.into_body().into_reader();
        reader.take(MAX_ANSWER).read_to_end(&mut body).map_err(|error| NoAnswer(error.to_string()))?;
        Ok(Answer { status, retry_after, body })
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, PemError> {
    let items = parse_pem(pem).filter_map(Result::ok);
    let found: Vec<_> = items
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() { Err(PemError::NoCertificate) } else { Ok(found) }
}

impl std::fmt::Debug for Connection {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    #[test]
    fn a_refusal_is_an_answer_and_a_close_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/push", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            for answer in
                ["HTTP/1.1 429 X\r\nRetry-After: 7\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", ""]
            {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let sender =
            Sender::new(&Connection { timeout: Duration::from_mins(1), ..Connection::default() }).unwrap();
        let answer = sender.post(&url, &[("X-Scope-OrgID".into(), "a".into())], b"").unwrap();
        let expected = Answer { status: 429, retry_after: Some("7".into()), body: b"no".into() };
        assert_eq!(answer, expected);
        assert!(sender.post(&url, &[], b"").is_err());
        server.join().unwrap();
    }

    #[test]
    fn files_without_certificates_are_refused() {
        let connection = Connection { roots: Some(b"no PEM".to_vec()), ..Connection::default() };
        assert!(matches!(Sender::new(&connection), Err(PemError::NoCertificate)));
    }
}
