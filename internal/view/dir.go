package view

import (
	"encoding/json"

	"github.com/stonelayer/stone/journal"
)

// Dir returns the directory in which the command started a run, empty if the command did not.
func Dir(info journal.RunInfo) string {
	var from struct {
		Dir string `json:"dir"`
	}
	_ = json.Unmarshal(info.Source, &from) // the source of another program is its own
	return from.Dir
}
