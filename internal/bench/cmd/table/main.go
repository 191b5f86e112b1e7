// Command table reads the output of go test -bench in this module and prints one table:
// Stone, the floor, the best peer, the bound and whether it is met. Several rounds may be
// concatenated; see the Makefile.
//
//	go test -run '^$' -bench . | go run ./cmd/table
//
// Progress goes to standard error. A missed figure is a word in the table, not
// a failure: the exit status is 1 only when a benchmark failed or a row has no
// figure.
//
// With two files it compares Stone's rows in them, for make bench-against, and fails
// if one got worse:
//
//	go run ./cmd/table before.txt after.txt
//
// With the word "medians" it prints all figures without bounds, for make fleet.
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
