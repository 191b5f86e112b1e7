package serve

import (
	"crypto/rand"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// sessionIdle is how long a session may be idle before it ends.
	sessionIdle = 24 * time.Hour
	// sessionsEach is the maximum number of sessions per token. When it is exceeded, the least recently used session ends, so
	// nobody can exhaust the memory or end the sessions of other tokens.
	sessionsEach = 16
)

// sessions holds the sessions of browsers that have signed in to this process. A cookie contains a session id, not the token, and
// is useless after logging out. The token is kept because Access checks it on every request, so revoking a token ends its
// sessions.
type sessions struct {
	mu sync.Mutex
	by map[string]*session
}

type session struct {
	token string
	used  time.Time
}

// start returns the id of a new session.
func (s *sessions) start(token string, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]*session{}
	}
	oldest, same := "", 0
	for id, one := range s.by {
		if now.Sub(one.used) > sessionIdle {
			delete(s.by, id)
			continue
		}
		if one.token != token {
			continue
		}
		if same++; oldest == "" || one.used.Before(s.by[oldest].used) {
			oldest = id
		}
	}
	if same >= sessionsEach {
		delete(s.by, oldest)
	}
	id := rand.Text()
	s.by[id] = &session{token, now}
	return id
}

// token returns the token of a session, or "" if there is none.
func (s *sessions) token(id string, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.by[id]
	if one == nil || now.Sub(one.used) > sessionIdle {
		delete(s.by, id)
		return ""
	}
	one.used = now
	return one.token
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, id)
}

// secure reports whether the browser uses TLS, either to this server or to a proxy before it. No list of trusted proxies is
// needed: the sender of a forged header only receives a cookie that its browser does not send over plain HTTP.
func secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// cookieName returns the name of the session cookie. With TLS, the prefix __Host- prevents other hosts of the domain from setting
// it. Without TLS, browsers send a cookie to every port of a host, so the name contains the port: otherwise two servers on one
// machine would sign each other out.
func cookieName(r *http.Request) string {
	if secure(r) {
		return "__Host-stone"
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "stone-" + port
	}
	return "stone"
}

// cookie returns the cookie that sets or ends a session in the browser.
func cookie(r *http.Request, id string) *http.Cookie {
	return &http.Cookie{Name: cookieName(r), Value: id, Path: "/", HttpOnly: true, Secure: secure(r), SameSite: http.SameSiteStrictMode}
}

// withToken returns the request with its session's token, unless it already has a token. It is needed because a browser cannot
// send the header Authorization. Clients of protocols may send the token in another header.
func (s *Server) withToken(r *http.Request) *http.Request {
	for _, p := range s.protocols {
		if p.Token != nil {
			r = p.Token(r)
		}
	}
	if r.Header.Get("Authorization") != "" {
		return r
	}
	token := s.session(r)
	if token == "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// session returns the token of the request's session, or "" if the request has no session.
func (s *Server) session(r *http.Request) string {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	return s.sessions.token(c.Value, time.Now())
}

// logout ends the session of a browser.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName(r)); err == nil {
		s.sessions.end(c.Value)
	}
	gone := cookie(r, "")
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
