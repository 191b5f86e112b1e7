// Package retrieve finds passages of documents, by their words and by the meaning of a question, and says in
// which lines of which file they are.
//
//	store, err := sqlite.Open("docs.db")
//	…
//	defer store.Close()
//	index := &retrieve.Index{Store: store, Embedder: openai.NewEmbedder(openai.Config{Model: "text-embedding-3-small"})}
//	report, err := stone.Produce(ctx, index.Pipeline("index", os.DirFS("docs")), retrieve.Indexed, stone.Config{
//		RunID: "index-17", Recorder: journal.Keep(db, journal.Options{}),
//	})
//	…
//	answer, err := index.Search(ctx, retrieve.Query{Text: "how is a run resumed?"})
//	for _, hit := range answer.Hits {
//		fmt.Println(hit.Source(), hit.Text)
//	}
//
// # Documents
//
// A [Reader] takes a file apart into blocks: headings and paragraphs with their lines. There are readers for
// plain text, Markdown and HTML; package retrieve/pdf has one for PDF. Blocks of one section are joined to pieces
// of at most Index.Size bytes, which overlap by at most Index.Overlap bytes. A longer paragraph is split at its
// lines, sentences or words. The headings above a piece are kept with it, found with it, and embedded with it.
//
// Hidden files and folders, node_modules, binary files and files of more than 16 MiB are left out.
//
// # Nothing is computed twice
//
// Everything has its content as address. A document whose bytes have not changed is not read again, and a
// piece whose text has a vector is not embedded again, whichever file it is in now. So a second run over a
// changed folder pays for the changes, a moved file costs nothing, and deleted files are removed.
// A vector is in the store before its request counts as done. A run that is killed and resumed, or started
// anew, repeats at most the requests that were on their way: their answers are lost, and the provider may
// have billed them.
//
// # Ranks
//
// Without an Embedder a search compares words alone, at once and for nothing. With one, passages are ranked by
// their words (BM25 in SQLite, ts_rank_cd in PostgreSQL) and by the cosine of their vectors with that of the
// question, and both ranks are joined by reciprocal rank fusion: a passage gets 1/(60+rank) from each of them
// (Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning
// methods", SIGIR 2009, doi:10.1145/1571941.1572114). [Index.Rerank] may order the best ones anew.
//
// Vectors are compared one by one, which is exact: see docs/how-to/retrieve.md for the time it takes.
package retrieve
