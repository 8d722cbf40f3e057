//! Terms and facts against plain numbers.

use ir::IntervalSet;
use ir::field::{Base, Field};
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, LookupId, Term, TermId};
use proptest::prelude::*;

use super::facts::Facts;
use super::terms::{Decided, Terms};

/// A packet of which terms are made: 16 bytes, and a number that a lookup bound.
#[derive(Clone, Debug)]
struct World {
    bytes: [u8; 16],
    bound: u32,
}

/// A number, made from the packet.
#[derive(Clone, Debug)]
enum Number {
    Const(u128),
    Field(u16, u16),
    Bound,
    Binary(BinaryOp, Box<Number>, Box<Number>),
    Slice(Box<Number>, u32, u32),
    Fold(Box<Number>),
    NonZero(Box<Number>),
    Update(Box<Number>, Box<Number>),
    Choose(Box<Number>, u128, u128, Box<Number>, Box<Number>),
}

fn op() -> impl Strategy<Value = BinaryOp> {
    use BinaryOp::{Add, And, Max, Min, Mul, Or, Rem, Shl, Shr, Sub, Xor};
    prop::sample::select(vec![Add, Add, Add, Sub, Sub, Mul, Rem, And, Or, Xor, Shl, Shr, Min, Max])
}

fn number() -> impl Strategy<Value = Number> {
    let constant = prop_oneof![
        (0u128..300).prop_map(Number::Const),
        prop::sample::select(vec![0xffffu128, 0x1_0000, 0xfeff, u128::MAX, u128::MAX - 13])
            .prop_map(Number::Const),
    ];
    let field = prop_oneof![
        prop::sample::select(vec![
            (0u16, 8u16),
            (8, 8),
            (0, 16),
            (16, 16),
            (32, 32),
            (36, 4),
            (4, 4)
        ])
        .prop_map(|(o, w)| Number::Field(o, w)),
        (0u16..100, 1u16..28).prop_map(|(o, w)| Number::Field(o, w)),
    ];
    let leaf = prop_oneof![2 => constant, 4 => field, 1 => Just(Number::Bound)];
    leaf.prop_recursive(5, 24, 4, |inner| {
        let b = |s: BoxedStrategy<Number>| s.prop_map(Box::new);
        let i = || b(inner.clone().boxed());
        prop_oneof![
            6 => (op(), i(), i()).prop_map(|(o, x, y)| Number::Binary(o, x, y)),
            2 => (i(), 0u32..40, 1u32..40).prop_map(|(x, l, w)| Number::Slice(x, l, w)),
            2 => i().prop_map(|x| Number::Fold(Box::new(Number::Slice(x, 0, 40)))),
            1 => i().prop_map(|x| Number::NonZero(Box::new(Number::Slice(x, 0, 16)))),
            2 => (i(), i()).prop_map(|(c, d)| Number::Update(c, d)),
            1 => (i(), 0u128..300, 0u128..300, i(), i())
                .prop_map(|(x, l, n, y, z)| Number::Choose(x, l, l + n, y, z)),
        ]
    })
}

fn bits(world: &World, offset: u16, width: u16) -> u128 {
    (offset..offset + width).fold(0, |value, bit| {
        let byte = world.bytes[usize::from(bit / 8)];
        value << 1 | u128::from(byte >> (7 - bit % 8) & 1)
    })
}

fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

fn fold(sum: u128) -> u128 {
    if sum == 0 { 0 } else { (sum - 1) % 0xffff + 1 }
}

/// What a number is.
fn plain(n: &Number, world: &World) -> u128 {
    let p = |n: &Number| plain(n, world);
    match n {
        Number::Const(c) => *c,
        Number::Field(offset, width) => bits(world, *offset, *width),
        Number::Bound => world.bound.into(),
        Number::Binary(op, a, b) => op.apply(p(a), p(b)),
        Number::Slice(x, low, width) => p(x) >> low & mask(*width),
        Number::Fold(x) => fold(p(x)),
        Number::NonZero(x) => {
            if p(x) == 0 {
                0xffff
            } else {
                p(x)
            }
        }
        Number::Update(checksum, delta) => {
            let sum = (p(checksum) & 0xffff ^ 0xffff) + (p(delta) & 0xff_ffff);
            match fold(sum) ^ 0xffff {
                0 => 0xffff,
                other => other,
            }
        }
        Number::Choose(x, low, high, y, z) => {
            if (*low..=*high).contains(&p(x)) {
                p(y)
            } else {
                p(z)
            }
        }
    }
}

/// The term for it.
fn build(n: &Number, terms: &mut Terms) -> TermId {
    match n {
        Number::Const(c) => terms.constant(*c),
        Number::Field(offset, width) => terms.input(Field::bits(Base::Data, *offset, *width)),
        Number::Bound => terms.bound(LookupId(0), 0, 32),
        Number::Binary(op, a, b) => {
            let (a, b) = (build(a, terms), build(b, terms));
            terms.binary(*op, a, b)
        }
        Number::Slice(x, low, width) => {
            let x = build(x, terms);
            terms.slice(x, *low, *width)
        }
        Number::Fold(x) => {
            let x = build(x, terms);
            terms.fold(x)
        }
        Number::NonZero(x) => {
            let x = build(x, terms);
            terms.non_zero(x)
        }
        Number::Update(checksum, delta) => {
            let (checksum, delta) = (build(checksum, terms), build(delta, terms));
            let (checksum, delta) = (terms.slice(checksum, 0, 16), terms.slice(delta, 0, 24));
            let ones = terms.constant(0xffff);
            let inverted = terms.binary(BinaryOp::Xor, checksum, ones);
            let sum = terms.binary(BinaryOp::Add, inverted, delta);
            let sum = terms.fold(sum);
            let sum = terms.binary(BinaryOp::Xor, sum, ones);
            let zero = terms.test(sum, &IntervalSet::single(0));
            terms.choose(zero, ones, sum)
        }
        Number::Choose(x, low, high, y, z) => {
            let x = build(x, terms);
            let when = terms.test(x, &IntervalSet::range(*low, *high));
            let (y, z) = (build(y, terms), build(z, terms));
            terms.choose(when, y, z)
        }
    }
}

/// What a term is.
fn value(terms: &Terms, term: TermId, world: &World) -> u128 {
    let v = |t: &TermId| value(terms, *t, world);
    match terms.get(term) {
        Term::Const(c) => *c,
        Term::Input(field) => bits(world, field.offset, field.width),
        Term::Bound(..) | Term::Cell(..) => world.bound.into(),
        Term::Binary(op, a, b) => op.apply(v(a), v(b)),
        Term::Slice { of, low, width } => v(of) >> low & mask((*width).into()),
        Term::Concat { high, low, width } => v(high) << width | v(low),
        Term::OnesSum(sum) => sum.value(|t| v(&t)),
        Term::NonZero(t) => {
            if v(t) == 0 {
                0xffff
            } else {
                v(t)
            }
        }
        Term::Choose(atom, a, b) => {
            if truth(terms, atom, world) {
                v(a)
            } else {
                v(b)
            }
        }
        Term::Map(of, table) => table.get(v(of)),
        Term::Position(_) | Term::Sum16 { .. } | Term::Hash(..) | Term::Now => unreachable!(),
    }
}

fn truth(terms: &Terms, atom: &Atom, world: &World) -> bool {
    match atom {
        Atom::Test(t, set) => set.contains(value(terms, *t, world)),
        Atom::Compare(op, a, b) => {
            let (a, b) = (value(terms, *a, world), value(terms, *b, world));
            op.holds(a, b)
        }
    }
}

fn world() -> impl Strategy<Value = World> {
    let byte = prop_oneof![3 => any::<u8>(), 1 => Just(0u8), 1 => Just(0xffu8)];
    let bound = prop_oneof![any::<u32>(), 0u32..70_000];
    (prop::array::uniform16(byte), bound).prop_map(|(bytes, bound)| World { bytes, bound })
}

#[derive(Clone, Debug)]
enum Question {
    Test(Number, u128, u128),
    Compare(CompareOp, Number, Number),
}

fn question() -> impl Strategy<Value = Question> {
    use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
    prop_oneof![
        (number(), 0u128..70_000, 0u128..70_000).prop_map(|(n, low, more)| Question::Test(
            n,
            low,
            low + more
        )),
        (prop::sample::select(vec![Eq, Ne, Lt, Le, Gt, Ge]), number(), number())
            .prop_map(|(op, a, b)| Question::Compare(op, a, b)),
    ]
}

fn ask(question: &Question, terms: &mut Terms) -> Decided {
    match question {
        Question::Test(n, low, high) => {
            let term = build(n, terms);
            terms.test(term, &IntervalSet::range(*low, *high))
        }
        Question::Compare(op, a, b) => {
            let (a, b) = (build(a, terms), build(b, terms));
            terms.compare(*op, a, b)
        }
    }
}

fn answer(question: &Question, world: &World) -> bool {
    match question {
        Question::Test(n, low, high) => (*low..=*high).contains(&plain(n, world)),
        Question::Compare(op, a, b) => {
            let (a, b) = (plain(a, world), plain(b, world));
            op.holds(a, b)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn terms_are_the_numbers_that_they_are_made_from(n in number(), worlds in prop::collection::vec(world(), 4)) {
        let mut terms = Terms::default();
        let term = build(&n, &mut terms);
        let (low, high) = terms.bounds(term);
        for world in &worlds {
            let is = value(&terms, term, world);
            prop_assert_eq!(is, plain(&n, world), "{:?}", terms);
            prop_assert!(low <= is && is <= high, "{} of {}..{}", is, low, high);
        }
    }

    #[test]
    fn what_is_known_is_true(
        known in prop::collection::vec(question(), 0..5),
        asked in prop::collection::vec(question(), 1..5),
        about in prop::collection::vec(number(), 1..4),
        world in world(),
    ) {
        let (mut terms, mut facts) = (Terms::default(), Facts::default());
        for question in &known {
            match ask(question, &mut terms) {
                Decided::Known(value) => prop_assert_eq!(value, answer(question, &world)),
                Decided::Open(atom, holds) => {
                    let truth = answer(question, &world) == holds;
                    facts.assume(&terms, &atom, truth);
                    prop_assert!(!facts.is_contradiction());
                }
            }
        }
        for question in &asked {
            let decided = ask(question, &mut terms);
            if let Some(value) = facts.resolve(&mut terms, &decided) {
                prop_assert_eq!(value, answer(question, &world), "{:?}", decided);
            }
        }
        for n in &about {
            let term = build(n, &mut terms);
            let is = plain(n, &world);
            prop_assert!(facts.set(&terms, term).contains(is));
            let cut = facts.cut(&mut terms, term, 8);
            prop_assert_eq!(value(&terms, cut, &world), is & 0xff);
        }
    }
}

/// `checksum - 0xffff · fold(...)`: one update of a checksum by what was added to its sum.
fn update(terms: &mut Terms, checksum: TermId, delta: TermId) -> TermId {
    let ones = terms.constant(0xffff);
    let inverted = terms.binary(BinaryOp::Xor, checksum, ones);
    let sum = terms.binary(BinaryOp::Add, inverted, delta);
    let sum = terms.fold(sum);
    terms.binary(BinaryOp::Xor, sum, ones)
}

#[test]
fn updates_of_a_checksum_are_one() {
    let mut terms = Terms::default();
    let checksum = terms.input(Field::bytes(Base::Data, 10, 2));
    let (a, b) =
        (terms.input(Field::bytes(Base::Data, 0, 1)), terms.input(Field::bytes(Base::Data, 1, 1)));
    let first = update(&mut terms, checksum, a);
    let both = update(&mut terms, first, b);
    let sum = terms.binary(BinaryOp::Add, a, b);
    assert_eq!(both, update(&mut terms, checksum, sum));
}

#[test]
fn a_time_to_live_is_counted_down_once() {
    let mut terms = Terms::default();
    let ttl = terms.input(Field::bytes(Base::Data, 8, 1));
    let mut facts = Facts::default();
    let (one, ten) = (terms.constant(1), terms.constant(10));
    let mut now = ttl;
    for hop in 1..=10u128 {
        let Decided::Open(atom, holds) = terms.test(now, &IntervalSet::range(2, 255)) else {
            panic!("decided too early");
        };
        facts.assume(&terms, &atom, holds);
        let less = terms.binary(BinaryOp::Sub, now, one);
        now = facts.cut(&mut terms, less, 8);
        assert_eq!(facts.set(&terms, ttl), IntervalSet::range(hop + 1, 255));
    }
    assert_eq!(now, terms.binary(BinaryOp::Sub, ttl, ten));
}
