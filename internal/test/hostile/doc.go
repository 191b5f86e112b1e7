// Package hostile tests attacks on Stone: hostile plans, answers, tool servers,
// repositories and configurations. It contains only tests.
//
// The oracle of an attack is outside the product: files touched, processes started,
// bytes sent, requests and tokens that a server counted.
package hostile
