/**
 * Seeds that failed once; `npm run simulate` runs them before new ones. A seed produces the same history only while the
 * simulation draws the same choices in the same order. After a change of the simulation it is an ordinary history, so each
 * fixed bug has its own test. Seeds are only added to this list.
 */
export const FAILED_SEEDS: readonly number[] = [
  4, 219, 1_364, 1_751, 7_001_057, 8_000_236, 31_016_592, 363_002_626, 500_000_021, 601_000_031, 602_000_062,
  603_000_011, 604_000_033, 605_000_087, 606_000_008, 626_702_086, 693_142_414, 779_990_468, 670_000_823, 670_151_991,
  670_178_450, 981_201_846, 475_954_736, 633_449_727, 829_919_254, 589_050_943, 655_597_331, 4_001_173, 7_000_003,
  7_000_004, 7_000_011, 319_176_536, 505_538_912, 159_124_065, 960_385_084, 980_186_833,
];
