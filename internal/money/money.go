// Package money formats amounts of money in USD.
package money

import (
	"math"
	"strconv"
)

// USD returns a cost in USD as text. Zero becomes "", and an estimate is marked with "~". A cost below a cent is written with two
// significant digits, because many calls cost so little.
func USD(usd float64, estimated bool) string {
	if math.Abs(usd) < least {
		return ""
	}
	text := strconv.FormatFloat(usd, 'f', digits(math.Abs(usd)), 64)
	if estimated {
		return "~" + text
	}
	return text
}

// least is the smallest cost that is printed. Smaller amounts are rounding errors of sums.
const least = 1e-12

// digits returns the number of digits after the decimal point with which a cost is printed.
func digits(usd float64) int {
	switch {
	case usd >= 1:
		return 2
	case usd >= 0.01:
		return 4
	}
	return 1 - int(math.Floor(math.Log10(usd)))
}

// Signed returns a difference between two costs as text, with a sign.
func Signed(usd float64) string {
	text := USD(usd, false)
	switch {
	case text == "":
		return "+0"
	case usd > 0:
		text = "+" + text
	}
	return text
}

// Cost returns, as text, a cost and the amount that may have been billed in addition, or "" if both are zero.
func Cost(usd float64, estimated bool, possible float64) string {
	known, more := USD(usd, estimated), USD(possible, false)
	switch {
	case more == "":
		return known
	case known == "":
		return "possibly " + more
	}
	return known + ", possibly " + more + " more"
}

// Exact returns a configured amount, such as a limit or a price, as text without rounding.
func Exact(usd float64) string { return strconv.FormatFloat(usd, 'f', -1, 64) }

// Enough returns an amount rounded up to two significant digits.
func Enough(usd float64) float64 {
	if !(usd > 0) || math.IsInf(usd, 0) {
		return usd
	}
	unit := math.Pow(10, math.Floor(math.Log10(usd))-1)
	up, _ := strconv.ParseFloat(strconv.FormatFloat(math.Ceil(usd/unit*(1-1e-9))*unit, 'g', 3, 64), 64)
	return up
}
