//go:build !linux

package boxtest

func hasLandlock() bool { return false }
