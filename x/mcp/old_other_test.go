//go:build !unix

package mcp

// oldServer is for systems whose processes the tests of old servers can end.
func oldServer(string) { panic("not on this system") }
