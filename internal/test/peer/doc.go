// Package peer starts programs of other projects, for tests against them. `make peers`
// installs them in testdata/peers; a test whose peer is missing is skipped with a
// message, or fails where STONE_REQUIRED is set.
package peer
