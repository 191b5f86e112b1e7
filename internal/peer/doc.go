// Package peer starts programs that others have written, for tests against them.
// They are what `make peers` installs in testdata/peers; where one is missing, the
// test is skipped with a line that says so.
package peer
