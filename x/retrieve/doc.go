// Package retrieve finds passages of documents by words and by meaning. For each passage, it reports the file and the lines.
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
// A [Reader] splits a file into blocks: headings and paragraphs with their lines. This package reads plain text, Markdown and
// HTML; package x/retrieve/pdf reads PDF. The blocks of a section are joined into pieces of at most Index.Size bytes, which
// overlap by at most Index.Overlap bytes. A paragraph longer than a piece is split between lines, sentences or words. The
// headings above a piece are stored, searched and embedded together with it.
//
// Hidden files and folders, symbolic links, node_modules, binary files and files larger than 16 MiB are skipped.
//
// # Nothing is computed twice
//
// Documents and pieces are identified by their content. A document with the same bytes is not read again, and a piece that
// already has a vector is not embedded again, even if it has moved to another file. A second run on a folder therefore pays only
// for what has changed: moved files cost nothing, and deleted files are removed from the index. A folder without files is
// refused, because it may be a volume that is not mounted. A vector is stored before its request counts as done. When a run that
// was killed is resumed or started again, it repeats at most the requests that were in progress, which the provider may have
// billed.
//
// # Ranks
//
// Without an Embedder, a search ranks only by words and costs nothing. With an Embedder, passages are ranked by words (BM25 in
// SQLite, ts_rank_cd in PostgreSQL) and by the cosine between passage and question. Reciprocal rank fusion combines both
// rankings: each ranking contributes 1/(60+rank) to a passage's score (Cormack, Clarke and Büttcher, "Reciprocal rank fusion
// outperforms Condorcet and individual rank learning methods", SIGIR 2009, doi:10.1145/1571941.1572114). [Index.Rerank] can then
// reorder the best passages.
//
// A search first estimates all cosines from codes with 2 bits per number, and then computes the exact cosines of at least the
// 1,000 best candidates. docs/how-to/passages.md states recall and duration. A graph of neighbours answers faster, but finds only
// 1 to 67 % of the ten nearest vectors unless building it takes ten times as long. It also keeps all vectors in memory and does not
// support filters (internal/bench/vectors).
package retrieve
