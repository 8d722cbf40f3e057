//! Lists of rules that change are the same as lists made anew.

use catena_classify::{Cube, NoRoom, RuleList, RuleSet, edits};
use fastrand::Rng;
use proptest::prelude::*;

/// The greatest number of each dimension.
const GREATEST: [u32; 2] = [u32::MAX, 255];

fn cube(random: &mut Rng) -> Cube {
    let mut cube = RuleSet::new(&GREATEST, 1).everything(0);
    for (d, most) in [(0, 40), (1, 7)] {
        let low = random.u32(..most);
        (cube.low[d], cube.high[d]) = (low, random.u32(low..=most));
    }
    cube
}

fn list(rules: &[(u32, Vec<Cube>)]) -> RuleList {
    let mut set = RuleSet::new(&GREATEST, usize::MAX);
    for (number, (_, cubes)) in (0..).zip(rules) {
        cubes.iter().for_each(|c| set.push(Cube { rule: number, ..*c }).expect("there is room"));
    }
    let arms: Vec<u32> = rules.iter().map(|rule| rule.0).collect();
    RuleList::new(&set, &arms).expect("few rules with small arms")
}

fn check(list: &RuleList, rules: &[(u32, Vec<Cube>)]) {
    let keys: Vec<_> =
        (0..42).flat_map(|a| (0..9).map(move |b| [a, b, 0, 0, 0, 0, 0, 0])).collect();
    let mut found = vec![None; keys.len()];
    list.lookup_batch(&keys, &mut found);
    assert_eq!(list.len(), rules.len());
    for (key, found) in keys.iter().zip(found) {
        let first = rules.iter().find(|(_, cubes)| cubes.iter().any(|c| c.contains(key)));
        assert_eq!(found, first.map(|rule| rule.0), "{key:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changes_are_as_good_as_new(seed in any::<u64>(), count in 0usize..80, at_one_place in any::<bool>()) {
        let random = &mut Rng::with_seed(seed);
        let rule = |random: &mut Rng| {
            let cubes = (0..random.usize(..3)).map(|_| cube(random)).collect();
            (random.u32(..3), cubes)
        };
        let mut rules: Vec<(u32, Vec<Cube>)> = (0..count).map(|_| rule(random)).collect();
        let mut changing = list(&rules);
        for _ in 0..60 {
            if random.u8(..3) > 0 || rules.is_empty() {
                let index = if at_one_place { rules.len() / 2 } else { random.usize(..=rules.len()) };
                let (arm, cubes) = rule(random);
                match changing.insert(index, arm, &cubes) {
                    Ok(()) => rules.insert(index, (arm, cubes)),
                    Err(NoRoom) => changing = list(&rules),
                }
            } else {
                let index = random.usize(..rules.len());
                changing.remove(index);
                rules.remove(index);
            }
            check(&changing, &rules);
        }
    }

    #[test]
    fn edits_make_the_new_list(
        old in prop::collection::vec(0u8..6, 0..150),
        new in prop::collection::vec(0u8..6, 0..150),
        splices in prop::collection::vec((0usize..150, 0usize..4, prop::collection::vec(0u8..6, 0..4)), 0..5),
        alike in any::<bool>(),
    ) {
        let mut new = if alike { old.clone() } else { new };
        let mut spliced = 0;
        for (at, removed, added) in splices {
            let at = at.min(new.len());
            let to = (at + removed).min(new.len());
            spliced += to - at + added.len();
            new.splice(at..to, added);
        }
        let edits = edits(old.len(), new.len(), usize::MAX, |i, j| old[i] == new[j]).expect("no limit");
        let mut made = old.clone();
        for edit in edits.iter().rev() {
            made.splice(edit.old.clone(), new[edit.new.clone()].iter().copied());
        }
        prop_assert_eq!(&made, &new);
        if alike && spliced == 0 {
            prop_assert!(edits.is_empty());
        }
    }
}

#[test]
fn a_rule_that_changed_is_found_among_thousands() {
    let old: Vec<u32> = (0..9000).collect();
    let mut new = old.clone();
    new.insert(5, 9999);
    new.remove(4000);
    new[8000] = 7777;
    let found = edits(old.len(), new.len(), 4, |i, j| old[i] == new[j]).expect("few edits");
    assert_eq!(found.len(), 3);
    assert!(edits(old.len(), new.len(), 3, |i, j| old[i] == new[j]).is_none());
}

#[test]
fn rules_without_end_can_be_put_in_front_and_behind() {
    let mut rules = list(&[]);
    for i in 0..10_000 {
        let index = if i % 2 == 0 { 0 } else { usize::MAX };
        assert_eq!(rules.insert(index, i % 7, &[]), Ok(()));
    }
    assert_eq!(rules.len(), 10_000);
    assert_eq!(rules.insert(3, RuleList::MAX_ARM + 1, &[]), Err(NoRoom));
}

#[test]
fn shadowed_rules_are_found_once_nothing_covers_them() {
    let random = &mut Rng::with_seed(1);
    let everything = |low| {
        let mut cube = RuleSet::new(&GREATEST, 1).everything(0);
        cube.low[0] = low;
        cube
    };
    let mut rules: Vec<(u32, Vec<Cube>)> = (0..300)
        .map(|i| (i % 3, (0..random.usize(1..3)).map(|_| cube(random)).collect()))
        .collect();
    // Two rules that cover most others, and each other's lower part.
    rules.insert(20, (3, vec![everything(5)]));
    rules.insert(10, (4, vec![everything(8)]));
    let mut changing = list(&rules);
    let shadowed = changing.shadowed().len();
    // Those in front are not, nor those with a low number.
    assert!(shadowed > 150 && shadowed < 290, "{shadowed}");
    check(&changing, &rules);
    for index in [10, 20] {
        changing.remove(index);
        rules.remove(index);
        check(&changing, &rules);
    }
    // What comes in front again covers them again; so does a list made of what there is.
    changing.insert(0, 5, &[everything(0)]).expect("room");
    rules.insert(0, (5, vec![everything(0)]));
    check(&changing, &rules);
    assert_eq!(list(&rules).shadowed(), (1..rules.len()).collect::<Vec<_>>());
}

#[test]
fn rules_that_several_cover_together_are_found_once_one_of_these_is_gone() {
    let random = &mut Rng::with_seed(2);
    let span = |low, high| {
        let mut cube = RuleSet::new(&GREATEST, 1).everything(0);
        (cube.low[0], cube.high[0]) = (low, high);
        cube
    };
    let last = GREATEST[0];
    // Three that hold everything together, none of which holds what reaches over its end.
    let parts = [(1, span(0, 9)), (2, span(10, 19)), (3, span(20, last))];
    let over = [span(5, 15), span(9, 20), span(0, last)];
    let mut rules: Vec<(u32, Vec<Cube>)> = parts.map(|(arm, cube)| (arm, vec![cube])).into();
    rules.extend(over.map(|cube| (4, vec![cube])));
    rules.extend((0..50).map(|_| (0, vec![cube(random)])));
    let mut changing = list(&rules);
    assert_eq!(changing.shadowed(), (3..rules.len()).collect::<Vec<_>>());
    check(&changing, &rules);
    for _ in 0..3 {
        changing.remove(1);
        rules.remove(1);
        check(&changing, &rules);
    }
    // Nearly everything is not everything.
    let gap = [(1, vec![span(0, 9)]), (2, vec![span(11, last)]), (3, vec![span(0, last)])];
    assert_eq!(list(&gap).shadowed(), []);
}
