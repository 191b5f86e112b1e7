//go:build race

package sat

const stops = false
