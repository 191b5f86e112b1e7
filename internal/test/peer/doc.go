// Package peer starts programs of other projects, for tests against them. `make peers` installs these programs in testdata/peers.
// If a test's peer is missing, the test is skipped with a message, or fails if STONE_REQUIRED is set.
package peer
