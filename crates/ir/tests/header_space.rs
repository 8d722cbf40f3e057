//! Header spaces against brute force: every operation agrees with membership of every valuation
//! of a small universe, whose fields overlap in all combinations.

use catena_ir as ir;
use ir::model::{BinaryOp, CompareOp};
use ir::{Base, Cond, Expr, Field, HeaderSpace, IntervalSet, TooLarge, field};
use proptest::prelude::*;

const LIMIT: usize = 1 << 16;

/// One byte at `data` and three bits at `anno`.
const BYTE: u16 = 8;
const BITS: u16 = 3;

type Point = (u8, u8);

fn universe() -> impl Iterator<Item = Point> {
    (0..=u8::MAX).flat_map(|a| (0..1 << BITS).map(move |b| (a, b)))
}

/// The value of any field of the universe.
fn value(point: Point) -> impl Fn(Field) -> Option<u128> {
    move |f| {
        let (bits, width) = match f.base {
            Base::Data => (point.0, BYTE),
            Base::Annotation => (point.1, BITS),
            _ => return None,
        };
        let shift = width.checked_sub(f.offset + f.width)?;
        Some(u128::from(bits) >> shift & f.max())
    }
}

fn members(space: &HeaderSpace) -> Vec<Point> {
    universe().filter(|&p| space.contains(value(p)).expect("every field has a value")).collect()
}

/// Evaluates a condition as the interpreter would.
fn holds(cond: &Cond, point: Point) -> bool {
    match cond {
        Cond::Const(c) => *c,
        Cond::Test(e, set) => set.contains(number(e, point)),
        Cond::Compare(op, a, b) => {
            let order = number(a, point).cmp(&number(b, point));
            match op {
                CompareOp::Eq => order.is_eq(),
                CompareOp::Ne => order.is_ne(),
                CompareOp::Lt => order.is_lt(),
                CompareOp::Le => order.is_le(),
                CompareOp::Gt => order.is_gt(),
                CompareOp::Ge => order.is_ge(),
            }
        }
        Cond::All(all) => all.iter().all(|c| holds(c, point)),
        Cond::Any(any) => any.iter().any(|c| holds(c, point)),
        Cond::Not(c) => !holds(c, point),
        Cond::FlowExists(..) => unreachable!("not generated"),
    }
}

fn number(expr: &Expr, point: Point) -> u128 {
    match expr {
        Expr::Const(c) => *c,
        Expr::Field(f) => value(point)(*f).expect("a field of the universe"),
        Expr::Binary(BinaryOp::And, a, b) => number(a, point) & number(b, point),
        Expr::Binary(BinaryOp::Shr, a, b) => number(a, point) >> number(b, point),
        _ => unreachable!("not generated"),
    }
}

fn any_field() -> impl Strategy<Value = Field> {
    prop_oneof![
        (0..BYTE).prop_flat_map(|o| (Just(o), 1..=BYTE - o)).prop_map(|(o, w)| Field::bits(
            Base::Data,
            o,
            w
        )),
        (0..BITS).prop_flat_map(|o| (Just(o), 1..=BITS - o)).prop_map(|(o, w)| Field::bits(
            Base::Annotation,
            o,
            w
        )),
    ]
}

fn any_set() -> impl Strategy<Value = IntervalSet> {
    let interval = (0u128..300, 0u128..60).prop_map(|(low, n)| (low, low + n));
    let small = (0u128..8, 0u128..3).prop_map(|(low, n)| (low, low + n));
    prop::collection::vec(prop_oneof![interval, small], 0..4).prop_map(IntervalSet::from_intervals)
}

fn any_tested() -> impl Strategy<Value = Expr> {
    prop_oneof![
        4 => any_field().prop_map(Expr::Field),
        1 => any_field().prop_flat_map(|f| (Just(f), 0..f.width))
            .prop_map(|(f, n)| Expr::Field(f) >> n),
        1 => (any_field(), 0u8..).prop_map(|(f, m)| Expr::Field(f) & m),
        1 => (any_field(), 0u8.., 0u8..).prop_map(|(f, m, n)| (Expr::Field(f) & m) & n),
    ]
}

fn any_cond() -> impl Strategy<Value = Cond> {
    let ops =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Cond::Const),
        8 => (any_tested(), any_set()).prop_map(|(e, s)| Cond::Test(e, s)),
        2 => (any_tested(), prop::sample::select(ops.to_vec()), 0u128..9)
            .prop_map(|(e, op, c)| Cond::Compare(op, e, Expr::Const(c))),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Cond::All),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Cond::Any),
            inner.prop_map(|c| Cond::Not(Box::new(c))),
        ]
    })
}

fn any_space() -> impl Strategy<Value = HeaderSpace> {
    any_cond().prop_map(|c| HeaderSpace::from_cond(&c, LIMIT).unwrap().expect("about fields alone"))
}

/// No packet is in two cubes, no set is empty or full, and fields of a cube share no bit.
fn assert_canonical(space: &HeaderSpace) {
    for point in universe() {
        let cubes = space.cubes().iter().filter(|c| c.contains(value(point)) == Some(true));
        assert!(cubes.count() <= 1, "{point:?} twice in {space}");
    }
    for cube in space.cubes() {
        for (i, (f, set)) in cube.fields().iter().enumerate() {
            assert!(!set.is_empty() && !set.is_full(f.width));
            assert!(set.is_subset(&IntervalSet::full(f.width)));
            assert!(cube.fields()[..i].iter().all(|(g, _)| g < f && !g.overlaps(*f)));
        }
    }
}

proptest! {
    #[test]
    fn conditions_become_what_they_mean(cond in any_cond()) {
        let space = HeaderSpace::from_cond(&cond, LIMIT).unwrap().expect("about fields alone");
        assert_canonical(&space);
        for point in universe() {
            prop_assert_eq!(space.contains(value(point)), Some(holds(&cond, point)));
        }
        let back = space.to_cond();
        for point in universe() {
            prop_assert_eq!(holds(&back, point), holds(&cond, point));
        }
    }

    #[test]
    fn algebra_agrees_with_membership(a in any_space(), b in any_space()) {
        let results = [
            a.intersect(&b, LIMIT).unwrap(),
            a.union(&b, LIMIT).unwrap(),
            a.subtract(&b, LIMIT).unwrap(),
            a.complement(LIMIT).unwrap(),
        ];
        results.iter().for_each(assert_canonical);
        let (mut subset, mut disjoint) = (true, true);
        for point in universe() {
            let is_in = |s: &HeaderSpace| s.contains(value(point)).unwrap();
            let (x, y) = (is_in(&a), is_in(&b));
            let expected = [x && y, x || y, x && !y, !x];
            for (space, expected) in results.iter().zip(expected) {
                prop_assert_eq!(is_in(space), expected, "{:?} in {}", point, space);
            }
            subset &= !x || y;
            disjoint &= !(x && y);
        }
        prop_assert_eq!(a.is_subset(&b, LIMIT), Ok(subset));
        prop_assert_eq!(a.is_disjoint(&b, LIMIT), Ok(disjoint));
        for space in results.iter().chain([&a, &b]) {
            prop_assert_eq!(space.is_empty(), members(space).is_empty());
            let Some(sample) = space.sample() else { continue };
            let found = universe().any(|p| {
                sample.iter().all(|&(f, v)| value(p)(f) == Some(v)) && space.contains(value(p)) == Some(true)
            });
            prop_assert!(found, "{:?} of {}", sample, space);
        }
    }

    #[test]
    fn compacting_changes_no_member(a in any_space(), b in any_space()) {
        let mut space = a.union(&b, LIMIT).unwrap();
        let (before, cubes) = (members(&space), space.cubes().len());
        space.compact();
        assert_canonical(&space);
        prop_assert!(space.cubes().len() <= cubes);
        prop_assert_eq!(members(&space), before);
    }

    #[test]
    fn masks_and_prefixes_convert_without_loss(
        f in any_field(), v in 0u128..256, mask in 0u128..256, length in 0u16..12,
    ) {
        let masked = HeaderSpace::masked(f, v, mask);
        let prefix = HeaderSpace::prefix(f, v, length);
        let free = f.width.saturating_sub(length);
        for point in universe() {
            let number = value(point)(f).unwrap();
            prop_assert_eq!(masked.contains(value(point)), Some(number & mask == v));
            prop_assert_eq!(prefix.contains(value(point)), Some(number >> free == (v & f.max()) >> free));
        }
    }

    #[test]
    fn a_limit_is_kept(a in any_space(), b in any_space(), limit in 0usize..6) {
        for result in [a.intersect(&b, limit), a.union(&b, limit), a.subtract(&b, limit)] {
            match result {
                Ok(space) => prop_assert!(space.cubes().len() <= limit.max(a.cubes().len())),
                Err(e) => prop_assert_eq!(e, TooLarge { limit }),
            }
        }
    }
}

#[test]
fn wide_masks_stay_small_and_wide_fields_stay_exact() {
    let odd = 0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaau128;
    let space = HeaderSpace::masked(field::ip6::SRC, odd, odd);
    assert_eq!(space.cubes().len(), 1);
    assert_eq!(space.cubes()[0].fields().len(), 64);
    let whole = HeaderSpace::test(field::ip6::SRC, &IntervalSet::single(odd));
    assert_eq!(whole.is_subset(&space, LIMIT), Ok(true));
    let other =
        HeaderSpace::test(field::ip6::SRC, &IntervalSet::single(odd ^ odd & odd.wrapping_neg()));
    assert_eq!(other.is_disjoint(&space, LIMIT), Ok(true));
    assert_eq!(whole.subtract(&space, LIMIT), Ok(HeaderSpace::empty()));
}

#[test]
fn what_would_explode_is_refused() {
    // Disjoint stripes of each of 16 fields: their differences multiply.
    let stripes = IntervalSet::masked(8, 0, 1).unwrap();
    let fields: Vec<Field> = (0..16).map(|i| Field::bytes(Base::Data, i, 1)).collect();
    let all = |set: &IntervalSet| Cond::All(fields.iter().map(|f| f.is_in(set.clone())).collect());
    let a = HeaderSpace::from_cond(&all(&stripes), 100).unwrap().unwrap();
    assert_eq!(a.cubes().len(), 1);
    let mut rest = HeaderSpace::full();
    let mut refused = false;
    for i in 0..64 {
        let set = IntervalSet::range(i, 255 - i);
        let cut = HeaderSpace::from_cond(&all(&set), 100).unwrap().unwrap();
        match rest.subtract(&a.intersect(&cut, 100).unwrap().complement(100).unwrap(), 100) {
            Ok(next) => rest = next,
            Err(TooLarge { limit: 100 }) => refused = true,
            Err(e) => panic!("{e}"),
        }
    }
    assert!(!refused, "cutting to ever smaller cubes is cheap");
    let xor = |n: u16| {
        let bit = |i, v: u8| Field::bits(Base::Data, i, 1).eq(v);
        (0..n).fold(Cond::Const(false), |odd, i| {
            Cond::Any(vec![
                Cond::All(vec![odd.clone(), bit(i, 0)]),
                Cond::All(vec![odd.not(), bit(i, 1)]),
            ])
        })
    };
    assert_eq!(HeaderSpace::from_cond(&xor(4), 100).unwrap().unwrap().cubes().len(), 8);
    assert_eq!(HeaderSpace::from_cond(&xor(12), 100), Err(TooLarge { limit: 100 }));
}

#[test]
fn conditions_about_more_than_fields_are_not_spaces() {
    let reg = Expr::Reg(ir::model::Reg(0));
    for cond in [
        reg.clone().eq(1u8),
        Cond::Any(vec![field::ip::TTL.eq(1u8), field::ip::SRC.eq(field::ip::DST.get())]),
        Cond::Not(Box::new((field::ip::TTL.get() + 1u8).eq(1u8))),
        Cond::FlowExists(ir::model::StateRef(0), vec![reg]),
    ] {
        assert_eq!(HeaderSpace::from_cond(&cond, LIMIT), Ok(None), "{cond:?}");
    }
}

#[test]
fn a_missing_field_leaves_membership_open() {
    let space =
        HeaderSpace::from_cond(&field::ip::TTL.eq(1u8).and(field::ip::PROTO.eq(6u8)), LIMIT)
            .unwrap()
            .unwrap();
    let ttl = |v| move |f| (f == field::ip::TTL).then_some(v);
    assert_eq!(space.contains(ttl(2)), Some(false));
    assert_eq!(space.contains(ttl(1)), None);
}

#[test]
fn people_can_read_it() {
    use field::{eth, ip, ip6, transport};
    let show = |cond: Cond| HeaderSpace::from_cond(&cond, LIMIT).unwrap().unwrap().to_string();
    let net = IntervalSet::prefix(32, 0x0a00_0000, 8);
    assert_eq!(
        show(
            ip::DST
                .is_in(net.clone())
                .and(ip::PROTO.eq(6u8))
                .and(transport::DPORT.is_in(IntervalSet::range(80, 443)))
        ),
        "ip.proto == 6 && ip.dst in {10.0.0.0/8} && transport.dport in {80..443}"
    );
    assert_eq!(
        show(ip::SRC.is_in(net.union(&IntervalSet::range(0xc0a8_0001, 0xc0a8_0003)))),
        "ip.src in {10.0.0.0/8, 192.168.0.1..192.168.0.3}"
    );
    assert_eq!(show(eth::DST.eq(0x0102_0304_0506u64)), "eth.dst == 01:02:03:04:05:06");
    assert_eq!(
        show(ip6::SRC.is_in(IntervalSet::prefix(128, 0x2001 << 112, 16)).or(ip::TTL.eq(0u8))),
        "ip6.src in {2001::/16} || ip.ttl == 0"
    );
    assert_eq!(show(Cond::Const(true)), "everything");
    assert_eq!(show(Cond::Const(false)), "nothing");
}
