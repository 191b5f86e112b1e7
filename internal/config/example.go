package config

import _ "embed"

// Example is a configuration with explanations, in which nothing is at fault.
//
//go:embed example.edn
var Example string
