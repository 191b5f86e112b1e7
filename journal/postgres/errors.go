package postgres

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stonelayer/stone/journal/internal/log"
)

// PostgreSQL error codes, from "PostgreSQL Error Codes" (Appendix A of its manual).
const (
	uniqueViolation   = "23505"
	readOnly          = "25006" // the server is a standby, for example after a failover
	idleTooLong       = "25P03"
	invalidPassword   = "28P01"
	noAuthorization   = "28000"
	noStatement       = "26000"
	noDatabase        = "3D000"
	noSerialization   = "40001"
	deadlock          = "40P01"
	noPermission      = "42501"
	sameStatement     = "42P05"
	tooManyConnection = "53300"
	diskFull          = "53100"
	lockNotAvailable  = "55P03"
	terminated        = "57P01"
	crashed           = "57P02"
	cannotConnectNow  = "57P03"

	refused = "STONE" // raised by the function stone.refuse
)

var passingCodes = []string{
	readOnly, idleTooLong, noSerialization, deadlock, lockNotAvailable, terminated, crashed, cannotConnectNow,
	noStatement, sameStatement,
}

// Passing implements [log.Database].
func (d *database) Passing(err error) bool {
	if errors.Is(err, log.ErrFenced) {
		return true
	}
	if server := (*pgconn.PgError)(nil); errors.As(err, &server) {
		switch server.Code[:2] {
		case "08", "53", "58": // connection exceptions, insufficient resources, system errors
			return true
		}
		// Another process may have created a run with the same ID in the meantime.
		return slices.Contains(passingCodes, server.Code) || server.Code == uniqueViolation && server.ConstraintName == "runs_id_key"
	}
	return disconnected(err)
}

// isReadOnly reports whether the server is a standby.
func isReadOnly(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == readOnly
}

// isUnknownName reports whether the server does not know a statement that this process has prepared.
func isUnknownName(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (server.Code == noStatement || server.Code == sameStatement)
}

// isFenced reports whether a transaction was stopped by the statement fence.
func isFenced(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == refused
}

// disconnected reports whether the server could not be reached or did not respond.
func disconnected(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.As(err, new(*pgconn.ConnectError)) || pgconn.Timeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, errSlow) ||
		err != nil && strings.HasSuffix(err.Error(), "conn closed") // pgconn does not export this error
}

// untrusted reports whether the server's certificate was rejected. In that case reads fail immediately, but writes are retried,
// because they may contain results that have been paid for.
func untrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) || // returned with sslmode=verify-ca
		errors.As(err, new(x509.CertificateInvalidError))
}

// Explain implements [log.Database]. The error names the database, the problem and the remedy.
func (d *database) Explain(err error) error {
	if err == nil || errors.As(err, new(*log.Trouble)) {
		return err
	}
	what := ""
	if server := (*pgconn.PgError)(nil); errors.As(err, &server) {
		switch server.Code {
		case invalidPassword, noAuthorization:
			what = "refuses the user: check the user and the password of its address, and pg_hba.conf"
		case noDatabase:
			what = "does not exist: create it with createdb, or name another database"
		case noPermission:
			what = "lacks a permission: grant CREATE on the database to create the tables, and access to the tables afterwards"
		case tooManyConnection:
			what = "has no free connections: raise max_connections, or use a connection pooler"
		case diskFull:
			what = "has no space left: free some space on its disk"
		case readOnly:
			what = "is read-only: name the primary server"
		case terminated, crashed, cannotConnectNow:
			what = "is starting or stopping: try again later"
		case lockNotAvailable, deadlock:
			what = "is locked by another process: try again later"
		default:
			what = "failed"
		}
	} else if untrusted(err) {
		what = "presents a certificate that cannot be verified: set sslrootcert to its CA, and use the host name of the certificate"
	} else if disconnected(err) {
		what = "does not answer: check that the server is running and reachable"
	}
	if what == "" {
		return err
	}
	return &log.Trouble{What: d.name + " " + what, Err: err, Passing: d.Passing(err) && !untrusted(err)}
}
