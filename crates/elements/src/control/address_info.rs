//! AddressInfo and PortInfo: names for addresses and ports.

use click::config::Argument;
use ipnet::Ipv6Net;
use ir::{Diagnostic, Model};

use crate::argument::{EtherAddress, FromArgument, Ip, Ip6, IpMask};
use crate::configure::{Arguments, Configure, Failed};
use crate::element::Element;
use crate::names::Meanings;

element! {
    /// AddressInfo(NAME ADDRESS [ADDRESS...], ...) -- gives names to addresses
    ///
    /// Each argument is a name and the addresses that it stands for: IPv4 and IPv6 addresses,
    /// networks (`10.0.0.0/8`) and Ethernet addresses. Where a configuration expects an address,
    /// it may then have the name; the kind of address that is expected decides which one of the
    /// name's is meant. To say it anyway, write `NAME:ip`, `NAME:ipnet`, `NAME:ip6`,
    /// `NAME:ip6net` or `NAME:eth`. A network with host bits, such as 10.0.0.1/8, names that
    /// address too.
    ///
    /// Names hold inside the compound element in which they are given, and in the compound
    /// elements within it. The order of declarations does not matter.
    ///
    /// = EXAMPLE
    ///
    /// AddressInfo(gw 10.0.0.1 10.0.0.0/24 00:50:ba:85:84:a9);
    /// ... -> EtherEncap(0x0800, gw, 2:2:2:2:2:2) -> ...
    ///
    /// = SEE ALSO
    ///
    /// PortInfo
    AddressInfo { category: Control, ports: "0/0", processing: "a/a", phase: Names, samples: [] }
}

/// See [`AddressInfo::CLASS`].
pub(crate) struct AddressInfo;

impl AddressInfo {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[]);
        for argument in arguments.rest() {
            define_addresses(&mut arguments, &argument);
        }
        arguments.finish()?;
        Ok(Self)
    }
}

fn define_addresses(arguments: &mut Arguments<'_, '_>, argument: &Argument) {
    let words: Vec<Argument> = argument.words().collect();
    let Some((name, addresses)) = words.split_first().filter(|(n, _)| !n.text.starts_with('#'))
    else {
        return;
    };
    if addresses.is_empty() {
        let error = format!("no address for the name '{}'", name.text);
        arguments.report(
            Diagnostic::error("bad-argument", error)
                .label(argument.span, "")
                .help("write NAME ADDRESS [ADDRESS...]"),
        );
    }
    for word in addresses {
        let cx = arguments.cx();
        let element = cx.name();
        let Some(meaning) = meaning_of(word, cx) else {
            arguments.error(word, format!("'{}' is not an address", word.text));
            continue;
        };
        let known = cx.names_mut().define(element, &name.text);
        if !add(known, meaning) {
            let warning = format!("'{}' stands for several addresses of a kind", name.text);
            let help = "the last one counts";
            arguments.report(
                Diagnostic::warning("conflicting-addresses", warning)
                    .label(word.span, "")
                    .help(help),
            );
        }
    }
}

fn meaning_of(word: &Argument, cx: &Configure<'_>) -> Option<Meanings> {
    fn parse<T: FromArgument>(word: &Argument, cx: &Configure<'_>) -> Option<T> {
        T::from_argument(word, cx.names(), cx.name()).ok()
    }
    let mut found = Meanings::default();
    if let Some(Ip(address)) = parse(word, cx) {
        found.ip = Some(address);
    } else if let Some(network) = parse::<IpMask>(word, cx) {
        let network = network.prefix()?;
        found.ip_prefix = Some(network);
        let is_host = network.addr() != network.network() || network.prefix_len() == 32;
        found.ip = is_host.then_some(network.addr());
    } else if let Some(Ip6(address)) = parse(word, cx) {
        found.ip6 = Some(address);
    } else if let Some(network) = parse::<Ipv6Net>(word, cx) {
        found.ip6_prefix = Some(network);
        let is_host = network.addr() != network.network() || network.prefix_len() == 128;
        found.ip6 = is_host.then_some(network.addr());
    } else {
        found.ether = Some(parse::<EtherAddress>(word, cx)?.0);
    }
    Some(found)
}

/// Adds meanings to those known; false if others of the same kind are replaced. An address that
/// comes with a network is replaced by one that was given by itself.
fn add(known: &mut Meanings, new: Meanings) -> bool {
    fn put<T: PartialEq>(known: &mut Option<T>, new: Option<T>) -> bool {
        let conflict = known.is_some() && new.is_some() && *known != new;
        if new.is_some() {
            *known = new;
        }
        !conflict
    }
    let ip = new.ip.filter(|_| new.ip_prefix.is_none() || known.ip.is_none());
    let ip6 = new.ip6.filter(|_| new.ip6_prefix.is_none() || known.ip6.is_none());
    [
        put(&mut known.ip, ip),
        put(&mut known.ip_prefix, new.ip_prefix),
        put(&mut known.ip6, ip6),
        put(&mut known.ip6_prefix, new.ip6_prefix),
        put(&mut known.ether, new.ether),
    ]
    .into_iter()
    .all(|well| well)
}

impl Element for AddressInfo {
    fn model(&self) -> Model {
        Model::default()
    }
}

element! {
    /// PortInfo(NAME PORT[/PROTOCOL] [ALIAS...], ...) -- gives names to TCP and UDP ports
    ///
    /// Each argument is a line as in /etc/services: a name, a port, and more names for it. The
    /// port may be followed by /tcp or /udp; without, the name holds for both. Names hold inside
    /// the compound element in which they are given, and in the compound elements within it.
    ///
    /// = EXAMPLE
    ///
    /// PortInfo(my-dns 5353/udp, web 8080);
    /// ... -> IPClassifier(udp dst port my-dns, tcp dst port web, -) -> ...
    ///
    /// = SEE ALSO
    ///
    /// AddressInfo, IPClassifier
    PortInfo { category: Control, ports: "0/0", processing: "a/a", phase: Names, samples: [] }
}

/// See [`PortInfo::CLASS`].
pub(crate) struct PortInfo;

impl PortInfo {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[]);
        for argument in arguments.rest() {
            define_ports(&mut arguments, &argument);
        }
        arguments.finish()?;
        Ok(Self)
    }
}

fn define_ports(arguments: &mut Arguments<'_, '_>, argument: &Argument) {
    let mut words: Vec<Argument> = argument.words().collect();
    if let Some(comment) = words.iter().position(|w| w.text.starts_with('#')) {
        words.truncate(comment);
    }
    let [name, port, aliases @ ..] = &words[..] else {
        if let [name] = &words[..] {
            let error = format!("no port for the name '{}'", name.text);
            arguments.report(
                Diagnostic::error("bad-argument", error)
                    .label(argument.span, "")
                    .help("write NAME PORT/tcp or NAME PORT/udp"),
            );
        }
        return;
    };
    let slash = port.text.find('/').unwrap_or(port.text.len());
    let number: Option<u16> = arguments.parse("PORT", &port.slice(0..slash));
    let (tcp, udp) = match port.text[slash..].to_ascii_lowercase().as_str() {
        "" => (true, true),
        "/tcp" => (true, false),
        "/udp" => (false, true),
        _ => {
            let protocol = port.slice(slash + 1..port.text.len());
            arguments.error(&protocol, format!("'{}' is not tcp or udp", protocol.text));
            return;
        }
    };
    let Some(number) = number else { return };
    for name in std::iter::once(name).chain(aliases) {
        let cx = arguments.cx();
        let element = cx.name();
        let known = cx.names_mut().define(element, &name.text);
        if tcp {
            known.tcp_port = Some(number);
        }
        if udp {
            known.udp_port = Some(number);
        }
    }
}

impl Element for PortInfo {
    fn model(&self) -> Model {
        Model::default()
    }
}
