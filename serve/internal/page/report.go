package page

import "encoding/json"

// reportType is the type of a report's node.
const reportType = "eval/report"

// A Report is what the pages show of an evaluation's report, which package x/eval writes and describes.
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

// An Estimate is a mean with its 95 % interval.
type Estimate struct {
	Mean, Low, High float64
	N               int
}

// sliced is the mean of the cases with one value in a column.
type sliced struct {
	Column, Value string
	Estimate
}

// against is the difference from a baseline.
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

// judged is a case that turned or is wrong.
type judged struct {
	Case, Path, Input string
	Before, Now       float64
	Expected          json.RawMessage
}
