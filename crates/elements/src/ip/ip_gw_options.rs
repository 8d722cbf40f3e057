//! IPGWOptions.

use std::net::Ipv4Addr;

use ir::field::{anno, ip};
use ir::model::{Block, Reg, reject};
use ir::{Expr, IntervalSet, Model, Op, Reason};
use net::wire::Ipv4;
use net::wire::ipv4::option;
use net::{Batch, annotation};

use crate::argument::Ip;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_header::{self, NETWORK, NO_HEADER};
use crate::ip::ip_options::Walk;

element! {
    /// IPGWOptions(MYADDR [, OTHERADDRS]) -- processes IP options as routers do
    ///
    /// Expects IP packets with their header marked. Fills in the record route and timestamp
    /// options (RFC 791): MYADDR is recorded; where a sender lists the addresses that shall put
    /// in their time, MYADDR and the list OTHERADDRS answer. Then the checksum is computed anew.
    ///
    /// Packets with malformed options go to output 1, or are dropped if that is not connected.
    /// The offset of the bad byte is left in an annotation for ICMPError.
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets with malformed options.
    ///
    /// = EXAMPLE
    ///
    /// IPGWOptions(1.0.0.1)[1] -> ICMPError(1.0.0.1, parameterproblem)
    ///
    /// = SEE ALSO
    ///
    /// ICMPError, IPOutputCombo
    IPGWOptions {
        category: Ip, ports: "1/1-2", processing: "a/ah",
        samples: [("10.0.0.9", 1, 2), ("10.0.0.9, 10.0.0.1 18.26.4.9", 1, 1)]
    }
}

/// See [`IPGWOptions::CLASS`].
pub(crate) struct IPGWOptions {
    router: Router,
    outputs: usize,
}

/// An option is malformed.
pub(crate) const BAD_OPTION: Reason = Reason("bad-ip-option");

impl IPGWOptions {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["MYADDR", "OTHERADDRS"]);
        let address: Ip = arguments.required("MYADDR");
        let mut router = Router::new(address.0);
        let others = arguments.keyword_argument("OTHERADDRS").or_else(|| arguments.next_raw());
        for word in others.iter().flat_map(|list| list.words()) {
            let other: Ip = arguments.parse("OTHERADDRS", &word).unwrap_or_default();
            router.addresses.push(other.0.to_bits());
        }
        arguments.finish()?;
        Ok(Self { router, outputs })
    }
}

impl Element for IPGWOptions {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, cx| {
            let Some(mut ip) = ip_header::view_mut(packet) else {
                return Verdict::Drop(NO_HEADER);
            };
            if ip.header_len() <= 20 {
                return Verdict::Pass;
            }
            match self.router.process(&mut ip, cx.now()) {
                Ok(()) => Verdict::Pass,
                Err(at) => {
                    packet.annotations_mut().set_u8(annotation::ICMP_PARAMETER_PROBLEM, at);
                    Verdict::Reject(1, BAD_OPTION)
                }
            }
        });
    }

    fn model(&self) -> Model {
        let mut block = vec![Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)])];
        block.extend(self.router.model(&reject(1, self.outputs, BAD_OPTION)));
        block.push(Op::emit(0u8));
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops")] }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(cx.tally.count(BAD_OPTION).to_string())
    }
}

/// A router as options know it.
pub(crate) struct Router {
    /// What it records.
    address: Ipv4Addr,
    /// All its addresses.
    addresses: Vec<u32>,
}

impl Router {
    /// A router with one address.
    pub(crate) fn new(address: Ipv4Addr) -> Self {
        Self { address, addresses: vec![address.to_bits()] }
    }

    /// Fills in the options of the header; `now` is in nanoseconds.
    ///
    /// # Errors
    /// The offset of the bad byte of a malformed option.
    pub(crate) fn process(&self, ip: &mut Ipv4<&mut [u8]>, now: u64) -> Result<(), u8> {
        let length = ip.header_len().saturating_sub(20);
        let options = ip.options_mut();
        if options.len() < length {
            return Ok(());
        }
        let (mut at, mut touched) = (0, false);
        while at < length && options[at] != option::END {
            let kind = options[at];
            if kind == option::NOP {
                at += 1;
                continue;
            }
            let size = options.get(at + 1).map_or(0, |&size| usize::from(size));
            let option = options.get_mut(at..at + size).filter(|o| o.len() >= 2);
            let result = match (option, kind) {
                (Some(option), option::RECORD_ROUTE) => self.record_route(option),
                (Some(option), option::TIMESTAMP) => self.put_timestamp(option, now),
                (Some(_), _) => Ok(()),
                (None, _) => Err(1),
            };
            result.map_err(|offset| (20 + at + offset) as u8)?;
            touched |= kind == option::RECORD_ROUTE || kind == option::TIMESTAMP;
            at += size;
        }
        if touched {
            ip.fill_checksum();
        }
        Ok(())
    }

    fn record_route(&self, option: &mut [u8]) -> Result<(), usize> {
        let length = option.len();
        let pointer = usize::from(*option.get(2).ok_or(1usize)?);
        if pointer >= 4 && pointer + 3 <= length {
            option[pointer - 1..pointer + 3].copy_from_slice(&self.address.octets());
            option[2] += 4;
        } else if pointer != length + 1 {
            return Err(2);
        }
        Ok(())
    }

    fn put_timestamp(&self, option: &mut [u8], now: u64) -> Result<(), usize> {
        let length = option.len();
        if length < 4 {
            return Err(1);
        }
        let pointer = usize::from(option[2]);
        if pointer < 5 {
            return Err(2);
        }
        let flag = option[3] & 0xf;
        let size = match flag {
            0 => 4,
            1 | 3 => 8,
            _ => return Err(3),
        };
        if pointer > length {
            // No room: the overflow counter of 4 bits, which must not overflow itself.
            option[3] = option[3].checked_add(0x10).ok_or(3usize)?;
            return Ok(());
        }
        let Some(entry) = option.get_mut(pointer - 1..pointer - 1 + size) else { return Err(2) };
        let time = milliseconds(now).to_be_bytes();
        match (flag, entry) {
            (0, entry) => entry.copy_from_slice(&time),
            (flag, entry) => {
                let (address, stamp) = entry.split_at_mut(4);
                if flag == 1 {
                    address.copy_from_slice(&self.address.octets());
                } else if !self.addresses.iter().any(|known| *address == known.to_be_bytes()) {
                    return Ok(());
                }
                stamp.copy_from_slice(&time);
            }
        }
        option[2] += size as u8;
        Ok(())
    }
}

/// Milliseconds since midnight, universal time.
fn milliseconds(now: u64) -> u32 {
    (now / 1_000_000 % MILLISECONDS_A_DAY) as u32
}

const MILLISECONDS_A_DAY: u64 = 86_400_000;

// Registers of the model.
const OPTIONS: Walk = Walk::new(0);
const POINTER: Reg = Reg(4);
/// The byte with overflow counter and flag.
const FLAGS: Reg = Reg(5);
const SIZE: Reg = Reg(6);
const TIME: Reg = Reg(7);
const TOUCHED: Reg = Reg(8);

impl Router {
    /// What [`Router::process`] means, for a header of at least 20 bytes; `failed` is what
    /// becomes of packets with malformed options. Uses the first nine registers.
    pub(crate) fn model(&self, failed: &Block) -> Block {
        let Walk { at, kind, .. } = OPTIONS;
        let fail = |offset: u8| {
            let mut block = vec![anno::ICMP_PARAMETER_PROBLEM.set(Expr::from(at) + offset)];
            block.extend(failed.iter().cloned());
            block
        };
        let each = vec![
            Op::when(Expr::from(kind).eq(option::RECORD_ROUTE), self.model_record_route(&fail)),
            Op::when(Expr::from(kind).eq(option::TIMESTAMP), self.model_timestamp(&fail)),
        ];
        let mut block = vec![Op::Let(TOUCHED, 0u8.into())];
        block.extend(OPTIONS.each(each, fail(1)));
        block.push(Op::when(Expr::from(TOUCHED).eq(1u8), ip_header::model_fill_checksum()));
        vec![Op::when(ip::HL.gt(5u8), block)]
    }

    fn model_record_route(&self, fail: &dyn Fn(u8) -> Block) -> Block {
        let Walk { at, length, .. } = OPTIONS;
        let reg = Expr::from;
        let fits = reg(POINTER).ge(4u8).and((reg(POINTER) + 3u8).le(length));
        vec![
            Op::Let(TOUCHED, 1u8.into()),
            Op::when(reg(length).lt(3u8), fail(1)),
            Op::Let(POINTER, Expr::load(NETWORK, reg(at) + 2u8, 8)),
            Op::If(
                fits,
                vec![
                    store(reg(at) + POINTER - 1u8, 32, self.address.to_bits()),
                    store(reg(at) + 2u8, 8, reg(POINTER) + 4u8),
                ],
                vec![Op::when(reg(POINTER).ne(reg(length) + 1u8), fail(2))],
            ),
        ]
    }

    fn model_timestamp(&self, fail: &dyn Fn(u8) -> Block) -> Block {
        let Walk { at, length, .. } = OPTIONS;
        let reg = Expr::from;
        let flag = || reg(FLAGS) & 0xfu8;
        let entry = || reg(at) + POINTER - 1u8;
        let flags = IntervalSet::from_intervals(vec![(0, 1), (3, 3)]);
        let overflow = vec![
            Op::when(reg(FLAGS).ge(0xf0u8), fail(3)),
            store(reg(at) + 3u8, 8, reg(FLAGS) + 0x10u8),
        ];
        let mine = self.addresses.iter().map(|&a| (a.into(), a.into())).collect();
        let is_mine = Expr::load(NETWORK, entry(), 32).is_in(IntervalSet::from_intervals(mine));
        let advance = || store(reg(at) + 2u8, 8, reg(POINTER) + SIZE);
        let put = vec![
            Op::when(flag().eq(0u8), vec![store(entry(), 32, TIME), advance()]),
            Op::when(flag().eq(1u8), vec![store(entry(), 32, self.address.to_bits())]),
            Op::when(
                flag().eq(1u8).or(flag().eq(3u8).and(is_mine)),
                vec![store(entry() + 4u8, 32, TIME), advance()],
            ),
        ];
        vec![
            Op::Let(TOUCHED, 1u8.into()),
            Op::when(reg(length).lt(4u8), fail(1)),
            Op::Let(POINTER, Expr::load(NETWORK, reg(at) + 2u8, 8)),
            Op::when(reg(POINTER).lt(5u8), fail(2)),
            Op::Let(FLAGS, Expr::load(NETWORK, reg(at) + 3u8, 8)),
            Op::when(flag().is_in(flags).not(), fail(3)),
            Op::Let(SIZE, Expr::choose(flag().eq(0u8), 4u8, 8u8)),
            Op::Let(TIME, Expr::Now / 1_000_000u32 % MILLISECONDS_A_DAY),
            Op::If(
                reg(POINTER).gt(length),
                overflow,
                vec![Op::If((reg(POINTER) + SIZE).gt(reg(length) + 1u8), fail(2), put)],
            ),
        ]
    }
}

fn store(offset: Expr, width: u16, value: impl Into<Expr>) -> Op {
    Op::Store { base: NETWORK, offset, width, value: value.into() }
}
