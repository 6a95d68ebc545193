// Package postgresql runs PostgreSQL 13 to 18 as a ReplicatedStatefulSet, in the unmodified upstream image.
//
// # Sequence
//
// A copy is as new as its last whole record: the number has the timeline in its high bits, and the end of
// that record below. The end is read from the log on disk, by pg_waldump, also if the server runs. The
// position up to which a server has flushed can be inside a record, and would decrease after a crash.
// A copy that cannot be started, because it is incomplete or not yet consistent, has the number 0. Data of
// another program or version, or a log that is damaged before its end, is an error.
//
// # Timelines
//
// Each start as primary makes a new timeline, also that of a copy that was primary before. Two copies that
// do not know each other can select the same number for different timelines, which PostgreSQL does not
// notice. So secondary compares the bytes of both logs before it continues or rewinds a copy.
//
// # Marks
//
// While a copy is created, copied or rewound, a file next to the data folder marks it as incomplete. The
// mark is on disk before the first change, and is removed after the last change is on disk. An incomplete
// copy is always copied again.
//
// # Files and secrets
//
// All files except the data are in a private folder below runDir: the socket, pg_hba.conf, passwords for
// libpq, and a copy of the private key, because PostgreSQL refuses keys that a group can read. Passwords
// are never in arguments, environments, logs or output. postgresql.auto.conf is written at each start.
package postgresql
