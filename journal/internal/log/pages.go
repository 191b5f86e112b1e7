package log

import "iter"

// firstPage is the number of rows of a first page if the caller does not say how many it needs,
// since many callers need few. Each later page has up to 8 times as many as the one before.
const firstPage = 64

// Pages ranges over up to total rows, or over all if total is 0. Next returns a page of up to limit
// rows after a row, from the start if after is nil, and whether more may follow. No page has more
// than most rows. A page is read completely before the caller of the range gets its first row. So
// no connection is in use while the caller works, and a caller that reads again needs no second
// one.
func Pages[T any](most, total int, next func(after *T, limit int) (page []T, more bool, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last *T
		limit, left := min(firstPage, most), total
		for {
			if total > 0 {
				limit = min(left, most)
			}
			page, more, err := next(last, limit)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for i, row := range page {
				if last = &row; !yield(row, nil) {
					return
				}
				clear(page[i : i+1]) // what the caller reads need not stay in memory
			}
			if left -= len(page); !more || len(page) == 0 || left == 0 {
				return
			}
			limit = min(8*limit, most)
		}
	}
}
