package money

import (
	"testing"

	"pgregory.net/rapid"
)

func TestUSD(t *testing.T) {
	for want, got := range map[string]string{
		"":                            USD(0, false),
		"12.35":                       USD(12.345, false),
		"0.5000":                      USD(0.5, false),
		"0.0100":                      USD(0.01, false),
		"0.0025":                      USD(0.0025, false),
		"~0.000044":                   USD(0.0000444, true),
		"0.00010":                     USD(0.0001, false),
		" ":                           USD(1e-17, false) + " ",
		"+0.000044":                   Signed(0.000044),
		"-1.50":                       Signed(-1.5),
		"+0":                          Signed(0),
		"1.24, possibly 1.53 more":    Cost(1.24, false, 1.53),
		"~0.0025, possibly 2.00 more": Cost(0.0025, true, 2),
		"possibly 1.53":               Cost(0, false, 1.53),
		"1.24":                        Cost(1.24, false, 0),
		"0.05":                        Exact(0.05),
		"0.098":                       Exact(Enough(0.0975)),
		"0.05 ":                       Exact(Enough(0.05)) + " ",
		"130":                         Exact(Enough(121)),
		"0 ":                          Exact(Enough(0)) + " ",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is said to be enough is enough, and not much more.
func TestEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		usd := rapid.Float64Range(1e-9, 1e6).Draw(t, "usd")
		if up := Enough(usd); up < usd*(1-1e-8) || up > usd*1.11 {
			t.Errorf("%v is enough for %v", up, usd)
		}
	})
}
