//! The request by which Pyroscope takes profiles (`push.v1.PusherService/Push`), and the name by which its older
//! versions do (`/ingest`).

use prost::Message;

/// The files of a service and kind, with its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushSeries {
    /// Labels: names and values. `__name__` is the kind, and `service_name` the service.
    pub labels: Vec<(String, String)>,
    /// Files of pprof, compressed with gzip.
    pub files: Vec<Vec<u8>>,
}

/// `PushRequest`.
#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<RawProfileSeries>,
}

/// `RawProfileSeries`.
#[derive(Clone, PartialEq, Message)]
struct RawProfileSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

/// `LabelPair`.
#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// `RawSample`.
#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    file: Vec<u8>,
}

impl PushSeries {
    /// The body of a request with this series.
    pub fn request(&self) -> Vec<u8> {
        let labels = self.labels.iter();
        let labels = labels.map(|(name, value)| LabelPair { name: label_name(name), value: value.clone() });
        let samples = self.files.iter().map(|file| RawSample { file: file.clone() });
        let series = RawProfileSeries { labels: labels.collect(), samples: samples.collect() };
        PushRequest { series: vec![series] }.encode_to_vec()
    }

    /// The name for `/ingest`: `service{key=value,...}`, which knows no escapes.
    pub fn ingest_name(&self) -> String {
        let plain = |text: &str| text.replace(['{', '}', ',', '=', '"'], "_");
        let of = |name: &str| self.labels.iter().find(|(key, _)| key == name).map(|(_, value)| plain(value));
        let others = self.labels.iter().filter(|(key, _)| !matches!(&**key, "__name__" | "service_name"));
        let pairs: Vec<_> =
            others.map(|(key, value)| format!("{}={}", label_name(key), plain(value))).collect();
        format!("{}{{{}}}", of("service_name").unwrap_or_default(), pairs.join(","))
    }
}

/// The name of a label, of letters, digits and `_`.
fn label_name(name: &str) -> String {
    name.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_pyroscope_takes() {
        let labels = [("__name__", "process_cpu"), ("service_name", "shop{a}"), ("host.name", "a,b")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let series = PushSeries { labels, files: vec![vec![1, 2]] };
        assert_eq!(series.ingest_name(), "shop_a_{host_name=a_b}");
        let request = PushRequest::decode(&*series.request()).unwrap();
        let names: Vec<_> = request.series[0].labels.iter().map(|label| &*label.name).collect();
        assert_eq!(names, ["__name__", "service_name", "host_name"]);
        assert_eq!(request.series[0].samples[0].file, [1, 2]);
    }
}
