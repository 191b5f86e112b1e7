package edn_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/test/cputime"
)

// hostile returns texts that aim at work that is more than linear.
func hostile() map[string]string {
	twins := "1" // sets of two sets each that differ in their last leaf only
	for i := range 14 {
		twins = fmt.Sprintf("#{%s #{%d %s}}", twins, i+2, twins)
	}
	deepSets := strings.Repeat("#{0 ", 500) + strings.Repeat("}", 500)
	return map[string]string{
		"twin sets":       twins,
		"deep sets":       deepSets,
		"open maps":       strings.Repeat("{1 2 {3 4} 5 ", 250),
		"many deep sets":  "[" + strings.Repeat(deepSets+" ", 200) + "]",
		"small vectors":   "[" + strings.Repeat("[1]", 200_000) + "]",
		"empty":           "[" + strings.Repeat("[]", 300_000) + "]",
		"integers":        "#{" + strings.Join(numbers(100_000, ""), " ") + "}",
		"decimals":        "#{" + strings.Join(numbers(50_000, "e9000M"), " ") + "}",
		"backslashes":     `"` + strings.Repeat(`\\`, 400_000) + `"`,
		"open strings":    strings.Repeat(`"\" `, 200_000),
		"comments":        strings.Repeat(";\n", 300_000) + "1",
		"lines":           strings.Repeat("\n", 800_000) + "{1 2 1 3}",
		"long integers":   "[" + strings.Repeat(strings.Repeat("9", 9999)+" ", 80) + "]",
		"one wide line":   "{" + strings.Repeat("é ", 200_000) + "}",
		"tagged":          strings.Repeat("#a ", 511) + "1",
		"namespaces":      "#:" + strings.Repeat("n", 255) + "{:k" + strings.Join(numbers(50_000, " 0"), " :k") + "}",
		"nested discards": strings.Repeat("#_", 511) + strings.Repeat("1 ", 512),
		"long keys":       strings.Repeat("{:"+strings.Repeat("k", 1000)+" ", 500) + "[" + strings.Repeat("1234 ", 100) + "]" + strings.Repeat("}", 500),
	}
}

func numbers(n int, suffix string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%d%s", i*10+1, suffix))
	}
	return all
}

// maxUnits bounds the work for a text of a megabyte, also under the race detector.
// Measured: 6 without the race detector, 103 with it on a loaded machine. Quadratic work takes thousands.
const maxUnits = 300

// TestHostile checks that no text takes much work or memory to read, compare, write or
// format.
func TestHostile(t *testing.T) {
	for name, text := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var err error
		took := cputime.Units(func() {
			var v edn.Value
			if v, err = edn.Read([]byte(text), edn.Limits{}); err != nil {
				return
			}
			again := read(t, text)
			size := len(v.String()) + len(edn.Format(v))
			if _, err := edn.ToJSON(v); err == nil {
				size++
			}
			if !v.Equal(again) || size > 100*len(text)+1000 {
				t.Errorf("%s: differs from itself or is written in %d bytes", name, size)
			}
		})
		runtime.ReadMemStats(&after)
		used := after.TotalAlloc - before.TotalAlloc
		t.Logf("%-15s %7d bytes: %.1f units, %d bytes allocated for each, %v", name, len(text), took, used/uint64(len(text)), err)
		if took > maxUnits || used > 2000*uint64(len(text)) {
			t.Errorf("%s: %d bytes took %.1f units of work and %d bytes", name, len(text), took, used)
		}
	}
}
