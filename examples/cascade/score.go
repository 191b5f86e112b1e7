package cascade

import "github.com/stonelayer/stone/budget"

// Report is the result.
type Report struct {
	Questions int `json:"questions"`
	Point
	Unsure    int            `json:"unsure"`  // questions whose final answer the gate refused
	Refused   map[string]int `json:"refused"` // how many answers of the small model each check refused
	Baselines Baselines      `json:"baselines"`
	Text      string         `json:"text"` // the table
}

// Baselines are the results of other ways of routing on the same questions.
type Baselines struct {
	SmallOnly Point   `json:"small_only"`
	LargeOnly Point   `json:"large_only"`
	Random    []Point `json:"random"` // expected values at every tenth of share
	Oracle    Point   `json:"oracle"` // asks the large model where the small one is wrong and it is right
}

// Point is the result of one way of routing.
type Point struct {
	Accuracy     float64 `json:"accuracy"`      // share of the questions whose answer is right
	LargeShare   float64 `json:"large_share"`   // share of the questions that the large model was asked
	GapRecovered float64 `json:"gap_recovered"` // share of the large model's lead over the small one
	CostUSD      float64 `json:"cost_usd"`      // by estimated tokens, see prices
}

// score rates the choices, one for each question.
func (e *exam) score(choices []Choice) Report {
	r := Report{Questions: len(choices), Refused: map[string]int{}}
	var cascade, smallOnly, largeOnly, oracle tally
	text := map[string]string{}
	for _, q := range e.questions {
		text[q.ID] = q.Text
	}
	for _, c := range choices {
		cheap, dear := e.byID[c.Question][small], e.byID[c.Question][large]
		cheapUSD, dearUSD := cost(small, text[c.Question], cheap.Text), cost(large, text[c.Question], dear.Text)
		smallOnly.count(cheap.Correct, false, cheapUSD)
		largeOnly.count(dear.Correct, true, dearUSD)
		if dear.Correct && !cheap.Correct {
			oracle.count(true, true, dearUSD)
		} else {
			oracle.count(cheap.Correct, false, cheapUSD)
		}
		cascade.count(e.byID[c.Question][c.Model].Correct, c.AskedLarge, c.CostUSD)
		if c.Unsure {
			r.Unsure++
		}
		for _, check := range c.Refused {
			r.Refused[check]++
		}
	}
	least, most := smallOnly.accuracy(), largeOnly.accuracy()
	r.Point = cascade.point(least, most)
	r.Baselines = Baselines{SmallOnly: smallOnly.point(least, most), LargeOnly: largeOnly.point(least, most), Oracle: oracle.point(least, most)}
	for tenth := range 11 {
		r.Baselines.Random = append(r.Baselines.Random, r.Baselines.random(float64(tenth)/10))
	}
	r.Text = r.table()
	return r
}

// cost returns the cost in USD of a model's reply to a question.
func cost(model, question, reply string) float64 {
	return prices[model].Of(budget.Usage{InputTokens: estimate(question), OutputTokens: estimate(reply)})
}

// random returns the expected result of routing by chance at a share.
func (b Baselines) random(share float64) Point {
	between := func(a, z float64) float64 { return a + share*(z-a) }
	return Point{
		LargeShare:   share,
		GapRecovered: between(b.SmallOnly.GapRecovered, b.LargeOnly.GapRecovered),
		Accuracy:     between(b.SmallOnly.Accuracy, b.LargeOnly.Accuracy),
		CostUSD:      between(b.SmallOnly.CostUSD, b.LargeOnly.CostUSD),
	}
}

// tally counts answers.
type tally struct {
	n, right, large int
	usd             float64
}

func (t *tally) count(right, large bool, usd float64) {
	t.n++
	t.usd += usd
	if right {
		t.right++
	}
	if large {
		t.large++
	}
}

func (t tally) accuracy() float64 { return float64(t.right) / float64(t.n) }

// point returns the result. If both models are equally accurate, the recovered gap is 0.
func (t tally) point(least, most float64) Point {
	p := Point{Accuracy: t.accuracy(), LargeShare: float64(t.large) / float64(t.n), CostUSD: t.usd}
	if most > least {
		p.GapRecovered = (p.Accuracy - least) / (most - least)
	}
	return p
}
