package eval

// The formulas of an evaluation are pure functions of scores.
//
// A score belongs to a question: the mean of its trials, since trials of one question are
// not independent. Questions may share a cluster, such as the document that they ask about;
// clusters are taken to be independent of each other.
//
//	e := averageOf(scores, nil)         // mean, standard error and interval by question
//	d := difference(old, now, nil) // of two runs over the same questions
//
// # Intervals
//
// All intervals have a nominal coverage of 95 %. averageOf uses the interval of Wilson where
// the scores are within 0 and 1, because the usual interval around the mean is too short,
// or empty, where nearly all answers are right or wrong. difference uses the interval of
// Student, ratioOf the paired bootstrap. Sources are named at each function.
//
// The tests simulate the coverage. It is between 94 % and 96 %, with these exceptions:
//
//   - The coverage of any interval for the rate of n binary answers jumps with the rate,
//     since there are only n+1 possible results. With 30 questions and a rate of 0.05, no
//     rule covers between 93.92 % and 98.44 % unless it draws lots. Averaged over rates
//     near each other, the coverage is between 94 % and 96 %.
//   - With fewer than about ten rare answers (right ones near a rate of 0, wrong ones near
//     1), means of trials and of clusters have wider intervals, which cover up to 99 %.
//   - With fewer than about five questions that turned, the interval of a difference
//     covers up to 99 %, again because few results are possible: of 30 questions that two
//     systems answer right at a rate of 0.05, three turn on average. difference covers 97.17 %.
//     An interval that agrees with McNemar's exact test covers, depending on its level, at least
//     96.25 % or at most 90.37 %.
