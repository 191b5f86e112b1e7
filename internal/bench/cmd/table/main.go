// Command table reads the output of go test -bench in this module and prints a table with Stone, the floor, the best peer, the
// bound, and whether the bound is met. Several rounds may be concatenated; see the Makefile.
//
//	go test -run '^$' -bench . | go run ./cmd/table
//
// Progress is written to standard error. A missed bound is only shown in the table: the exit status is 1 only if a benchmark
// failed or a row has no value.
//
// With two files, it compares Stone's rows in the files and fails if one has become worse ("make bench-against"):
//
//	go run ./cmd/table before.txt after.txt
//
// With the argument "medians", it prints the medians of all benchmarks, without bounds ("make fleet").
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	err := errors.New(`want no file, two, or "medians"`)
	switch {
	case len(os.Args) == 1:
		err = run(os.Stdin, os.Stdout, os.Stderr)
	case len(os.Args) == 2 && os.Args[1] == "medians":
		err = medians(os.Stdin, os.Stdout, os.Stderr)
	case len(os.Args) == 3:
		err = against(os.Args[1], os.Args[2], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out, progress io.Writer) error {
	m, err := read(in, progress)
	if err != nil {
		return err
	}
	if len(m.samples) > 0 {
		if err := m.print(out, rows); err != nil {
			return err
		}
	}
	if len(m.failures) > 0 {
		return fmt.Errorf("go test failed, see above; its first complaint: %s", m.failures[0])
	}
	return m.missing(rows)
}
