//go:build !linux

package memdir

func spacious(string) bool { return false }
