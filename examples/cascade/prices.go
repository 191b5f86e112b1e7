package cascade

import "github.com/stonelayer/stone/call"

// prices are those of early 2024, when the answers were recorded: of OpenAI's
// price list, and of what several hosts took for the small model.
var prices = map[string]call.Cost{
	small: {USDPerMTokIn: 0.6, USDPerMTokOut: 0.6},
	large: {USDPerMTokIn: 10, USDPerMTokOut: 30},
}

// estimate is about how many tokens a text has. The recording does not say.
func estimate(text string) int { return (len(text) + 3) / 4 }
