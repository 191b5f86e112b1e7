// Command matrix updates or checks the table in docs/reference/clients.md, from what tests have shown:
//
//	STONE_MATRIX=/tmp/matrix make test-all
//	go run ./internal/test/matrix -update /tmp/matrix docs/reference/clients.md
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	update := flag.Bool("update", false, "write the table")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("want the file of STONE_MATRIX and the page")
	}
	shown, err := os.ReadFile(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	page, err := os.ReadFile(flag.Arg(1))
	if err != nil {
		log.Fatal(err)
	}
	table := tableOf(string(shown))
	block := regexp.MustCompile(`(?s)\| client \|.*?\n\n`)
	old := block.FindString(string(page))
	if strings.TrimSpace(old) == strings.TrimSpace(table) {
		return
	}
	if !*update {
		for line := range strings.Lines(old) {
			if !strings.Contains(table, line) {
				fmt.Print("- ", line)
			}
		}
		for line := range strings.Lines(table) {
			if !strings.Contains(old, line) {
				fmt.Print("+ ", line)
			}
		}
		log.Fatalf("%s is not what the tests have shown: run this command with -update, or see which client is gone", flag.Arg(1))
	}
	text := strings.Replace(string(page), old, table+"\n", 1)
	text = regexp.MustCompile(`Tested on \d{4}-\d\d-\d\d`).ReplaceAllString(text, "Tested on "+time.Now().UTC().Format(time.DateOnly))
	if err := os.WriteFile(flag.Arg(1), []byte(text), 0o666); err != nil {
		log.Fatal(err)
	}
}

// tableOf returns a table with a row for each client and version.
func tableOf(shown string) string {
	features, tests := map[string][]string{}, map[string][]string{}
	for line := range strings.Lines(shown) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) < 4 {
			continue
		}
		client := fmt.Sprintf("`%s` %s", cells[0], cells[1])
		top, _, _ := strings.Cut(cells[2], "/")
		tests[client] = append(tests[client], "`"+top+"`")
		features[client] = append(features[client], cells[3:]...)
	}
	clients := make([]string, 0, len(tests))
	for client := range tests {
		clients = append(clients, client)
	}
	slices.Sort(clients)
	var b strings.Builder
	b.WriteString("| client | shown | by |\n|---|---|---|\n")
	for _, client := range clients {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", client, joined(features[client]), joined(tests[client]))
	}
	return b.String()
}

func joined(words []string) string {
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}
