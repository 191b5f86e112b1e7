package config

import _ "embed"

// Example is a commented, valid configuration.
//
//go:embed example.edn
var Example string
