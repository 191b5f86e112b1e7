package page

import "encoding/json"

// reportType is the type of the node that contains an evaluation's report.
const reportType = "eval/report"

// A Report contains those parts of an evaluation's report that the pages show. Package x/eval writes and describes the whole
// report.
type Report struct {
	Cases, Trials, Repeated, Reused int
	Scores                          []scored
	Cost                            struct {
		USD       float64
		JudgesUSD float64 `json:"judges_usd"`
		Whole     *struct {
			Cases          int
			USD, Low, High float64
		}
	}
	Failures []struct {
		Case  string
		Trial int
		Why   string
	}
	Against *against
	Gate    *struct {
		Verdict string
		Rules   []struct {
			Rule, Verdict, Found string
			Needed               int
		}
	}
}

// scored is the result of one scorer.
type scored struct {
	Name string
	Estimate
	Right, Wrong, Errors, Flips int
	NoAnswer                    int       `json:"no_answer"`
	PassAt                      []float64 `json:"pass_at"`
	PassAll                     []float64 `json:"pass_all"`
	Missed                      []judged
	Slices                      []sliced
}

// An Estimate is a mean with its 95 % confidence interval.
type Estimate struct {
	Mean, Low, High float64
	N               int
}

// sliced is the mean over the cases that have one value in a column.
type sliced struct {
	Column, Value string
	Estimate
}

// against is the difference to a baseline.
type against struct {
	With                string
	Cases, New, Missing int
	Scores              []struct {
		Name string
		Estimate
		Gained, Lost int
		P            float64
		Slices       []struct {
			sliced
			P float64
		}
		Turned []judged
	}
	USD, Seconds Estimate
}

// judged is a case whose verdict has changed, or a case that is wrong.
type judged struct {
	Case, Path, Input string
	Before, Now       float64
	Expected          json.RawMessage
}
