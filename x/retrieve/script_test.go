package retrieve_test

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/internal/storetest"
)

// Of questions in languages without spaces between words, words alone find the answers. They are in either form of Unicode.
func TestLanguages(t *testing.T) {
	for _, form := range []norm.Form{norm.NFC, norm.NFD} {
		files := storetest.Languages()
		for _, f := range files {
			f.Data = form.Bytes(f.Data)
		}
		x := opened(t, new(script.Embedder))
		build(t, x, files)
		for _, words := range []bool{true, false} {
			first, ten, n := map[string]int{}, map[string]int{}, map[string]int{}
			for _, q := range storetest.Questions {
				language, _, _ := strings.Cut(q.File, "/")
				n[language]++
				a, err := x.Search(t.Context(), retrieve.Query{Text: q.Text, K: 10, Words: words})
				if err != nil {
					t.Fatal(err)
				}
				for i := range a.Hits {
					if a.Hits[i].File == q.File {
						if ten[language]++; i == 0 {
							first[language]++
						}
						break
					}
				}
			}
			for language, all := range n {
				t.Logf("form %v, words alone %t, %s: %d of %d among ten, %d first", form, words, language, ten[language], all, first[language])
				if ten[language] < all {
					t.Errorf("form %v, words alone %t, %s: %d of %d answers among ten", form, words, language, ten[language], all)
				}
			}
		}
	}
}
