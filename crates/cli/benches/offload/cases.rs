//! The chains of the papers' experiments, and their traffic.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use elements::rule_packets;
use net::pcap::Reader;

use crate::cores::Case;
use crate::support::{self, Data, Frames, RuleSet};

/// The family of access lists.
pub(crate) const FAMILY: &str = "acl1";
/// How many rules SNF's lists have.
pub(crate) const RULES: [u32; 3] = [250, 700, 8500];
/// Destinations in the trace of Metron's figure 7.
const ROUTES: usize = 3117;
/// Flows of that figure's traffic here.
const FLOWS: usize = 10_000;
const MACS: &str = "02:00:00:00:01:01, 02:00:00:00:01:02";
/// Bytes of frames whose payloads are searched.
const SEARCHED: usize = 512;
const HEADERS: usize = 14 + rule_packets::HEADERS;

/// What makes chains.
pub(crate) struct Cases<'a> {
    pub(crate) data: &'a Data,
    /// Where their files are written.
    pub(crate) folder: PathBuf,
}

impl Cases<'_> {
    /// A chain between two devices, `in` and `out`, for frames that hold IPv4.
    fn case(&self, name: &str, body: &str, beside: &str, frames: Vec<Vec<u8>>) -> Case {
        let lists = self.data.folder().join("../isp-acl").canonicalize().expect("access lists");
        let body = body.replace("../isp-acl", &lists.display().to_string());
        let functions = self.data.functions();
        let text = format!(
            "require(nf);\n{functions}\nFromDevice(in) -> Classifier(12/0800) {body} -> ToDevice(out);\n{beside}"
        );
        let folder = self.folder.join(name.replace(' ', "-"));
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("chain.click");
        fs::write(&file, text).expect("the chain");
        Case { name: name.into(), file, wire: "in".into(), frames }
    }

    fn reaching(&self, set: RuleSet, size: usize) -> Vec<Vec<u8>> {
        self.data.reaching(set, size).iter().map(<[u8]>::to_vec).collect()
    }

    /// Frames that are received and sent.
    pub(crate) fn forwarding(&self, size: usize) -> Case {
        self.case("forwarding", "", "", self.reaching((FAMILY, RULES[0]), size))
    }

    /// What SNF's chains read, and frames that leave (figure 7.14).
    pub(crate) fn classifier(&self, rules: u32, size: usize) -> Case {
        let set = (FAMILY, rules);
        let body = format!(
            "-> Strip(14) -> CheckIPHeader -> IPFilter(file {}) -> GetIPAddress(16)
             -> RadixIPLookup(0.0.0.0/0 0, 10.0.0.0/8 0, 20.0.0.0/8 0, 40.0.0.0/8 0, 60.0.0.0/8 0,
                  80.0.0.0/8 0, 100.0.0.0/8 0, 120.0.0.0/8 0, 160.0.0.0/8 0, 200.0.0.0/8 0)
             -> EtherEncap(0x0800, {MACS})",
            support::list(set)
        );
        self.case(&format!("classifier {rules}"), &body, "", self.reaching(set, size))
    }

    /// The whole of them (figure 7.16).
    pub(crate) fn isp(&self, rules: u32, size: usize) -> Case {
        let set = (FAMILY, rules);
        self.case(&format!("isp {rules}"), &support::isp(set), "", self.reaching(set, size))
    }

    /// The access list of figure 6, and frames of `size` bytes for each of its rules.
    fn campus(&self, size: usize) -> (String, Vec<Vec<u8>>) {
        let list = self.data.folder().join(format!("../classbench/{FAMILY}_1k"));
        let list = list.canonicalize().expect("a list of 1,000 rules");
        let text = fs::read_to_string(&list).expect("the list");
        let mut random = fastrand::Rng::with_seed(1);
        let drawn = rule_packets::draw(&text, 4000, &mut random).expect("rules");
        let frame = |headers: &[u8; rule_packets::HEADERS]| {
            let mut frame = [[2, 0, 0, 0, 0, 1].repeat(2), vec![8, 0]].concat();
            frame.extend(headers);
            let payload = (HEADERS..size).map(|_| random.u8(b' '..b'~'));
            frame.extend(payload);
            frame
        };
        let frames = drawn.headers.iter().map(frame).collect::<Vec<_>>();
        let frames = Frames::of(frames).iter().map(<[u8]>::to_vec).collect();
        (format!("-> F({}, {MACS}) ", list.display()), frames)
    }

    pub(crate) fn firewall(&self, size: usize) -> Case {
        let (body, frames) = self.campus(size);
        self.case(&format!("firewall {size}"), &body, "", frames)
    }

    /// The firewall, and a core that forwards what it lets pass.
    pub(crate) fn firewall_then_forwarding(&self, size: usize) -> Case {
        let (body, frames) = self.campus(size);
        self.case("firewall then forwarding", &format!("{body} -> Queue -> Unqueue"), "", frames)
    }

    pub(crate) fn firewall_and_dpi(&self) -> Case {
        let (body, frames) = self.campus(SEARCHED);
        let rules = self.data.folder().join("../snort/community.rules");
        let rules = rules.canonicalize().expect("rules");
        let body = format!("{body} -> DPI({})", rules.display());
        self.case("firewall and dpi", &body, "", frames)
    }

    /// Router, NAPT and load balancer of figure 7.
    pub(crate) fn stateful(&self) -> Case {
        let prefixes = self.data.prefixes();
        let step = prefixes.len() / ROUTES;
        let destinations: Vec<[u8; 4]> = prefixes
            .iter()
            .step_by(step)
            .filter_map(|(prefix, _)| {
                let address: std::net::Ipv4Addr = prefix.split('/').next()?.parse().ok()?;
                Some((address.to_bits() | 1).to_be_bytes())
            })
            .take(ROUTES)
            .collect();
        let mut routes = String::new();
        for address in &destinations {
            let _ = write!(routes, "{}/32 0, ", std::net::Ipv4Addr::from(*address));
        }
        let body = format!(
            "-> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> RadixIPLookup({})
             -> DropBroadcasts -> dt :: DecIPTTL -> FixIPSrc(172.16.1.1) -> fr :: IPFragmenter(1500)
             -> nat :: IPRewriter(pattern 30.0.1.1 1024-65535 - - 0 1) -> lb :: IPRewriter(servers)
             -> EtherEncap(0x0800, {MACS})",
            routes.trim_end_matches(", ")
        );
        let beside = "servers :: RoundRobinIPMapper(- - 192.168.1.1 - 0 1, - - 192.168.1.2 - 0 1);
            nat[1] -> Discard; lb[1] -> Discard;
            dt[1] -> ICMPError(172.16.1.1, timeexceeded) -> Discard;
            fr[1] -> ICMPError(172.16.1.1, unreachable, needfrag) -> Discard;\n";
        let mix = self.data.mix(60);
        let frame = |(n, frame): (usize, &[u8])| {
            let mut frame = frame.to_vec();
            frame[30..34].copy_from_slice(&destinations[n % destinations.len()]);
            frame
        };
        let frames = Frames::of(mix.iter().take(FLOWS).enumerate().map(frame));
        let frames = frames.iter().map(<[u8]>::to_vec).collect();
        self.case("router napt lb", &body, beside, frames)
    }

    /// An example, and frames of a capture that come from one of its wires.
    pub(crate) fn example(&self, (file, wire, frames): (&str, &str, &str)) -> Case {
        let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
        let file = examples.join(file).with_extension("click");
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Case { name, file, wire: wire.into(), frames: capture(&examples.join(frames)) }
    }
}

fn capture(path: &Path) -> Vec<Vec<u8>> {
    let explain = |why: String| -> ! { panic!("{}: {why}", path.display()) };
    let file = File::open(path).unwrap_or_else(|why| explain(why.to_string()));
    let reader = Reader::open(BufReader::new(file));
    let mut reader = reader.unwrap_or_else(|why| explain(why.to_string()));
    let mut frames = Vec::new();
    while let Some(record) = reader.next().unwrap_or_else(|why| explain(why.to_string())) {
        frames.push(record.data.to_vec());
    }
    frames
}
