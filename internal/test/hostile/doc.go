// Package hostile contains only tests. They test attacks on Stone with hostile plans, answers, tool servers, repositories and
// configurations.
//
// Whether an attack succeeded is determined outside the product: by files touched, processes started, bytes sent, and the requests
// and tokens that a server has counted.
package hostile
