// Package unlinked has the tests of configurations in a program that links no kind.
package unlinked
