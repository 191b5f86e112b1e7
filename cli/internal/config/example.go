package config

import _ "embed"

// Example is a configuration with explanations and without faults.
//
//go:embed example.edn
var Example string
