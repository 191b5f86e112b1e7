// Package retrieve finds passages of documents by words and by meaning, with the file and lines of each.
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
// A [Reader] splits a file into blocks: headings and paragraphs with their lines. This package reads plain text,
// Markdown and HTML, package x/retrieve/pdf reads PDF. The blocks of a section are joined into pieces of at most
// Index.Size bytes, which overlap by at most Index.Overlap bytes. A longer paragraph is split at its lines, sentences
// or words. The headings above a piece are stored, searched and embedded with it.
//
// Hidden files and folders, symbolic links, node_modules, binary files and files of more than 16 MiB are skipped.
//
// # Nothing is computed twice
//
// Documents and pieces are addressed by their content. A document with the same bytes is not read again, and a piece with a
// vector is not embedded again, even if it moved to another file. A second run over a changed folder therefore pays only for the
// changes, a moved file costs nothing, and deleted files are removed. A folder without any file is refused, since it may not be
// mounted. A vector is stored before its request counts as done. A killed run, whether resumed or started again, repeats at most
// the requests that were in flight, which the provider may have billed.
//
// # Ranks
//
// Without an Embedder a search ranks by words alone and costs nothing. With one, passages are ranked by
// words (BM25 in SQLite, ts_rank_cd in PostgreSQL) and by the cosine between passage and question.
// Reciprocal rank fusion joins both: a passage gets 1/(60+rank) from each ranking
// (Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning
// methods", SIGIR 2009, doi:10.1145/1571941.1572114). [Index.Rerank] may reorder the best passages.
//
// A search first estimates all cosines from codes of 2 bits a number, and then computes the cosines of the 1,000 best candidates
// exactly. docs/how-to/passages.md states its recall and duration. A graph of neighbours answers sooner, but it finds only 1 to
// 67 % of the ten nearest unless building it takes ten times as long, keeps all vectors in memory and supports no filter
// (internal/bench/vectors).
package retrieve
