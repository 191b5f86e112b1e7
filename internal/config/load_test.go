package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stonelayer/stone/internal/config"
)

func TestExample(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.edn")
	if err := os.WriteFile(file, []byte(config.Example), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.App.Registry.Err(); err != nil {
		t.Error(err)
	}
}
