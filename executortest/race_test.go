//go:build race

package executortest_test

const raceEnabled = true
