// SPDX-License-Identifier: Apache-2.0
//! The scylla crate. A program of tests/interop/run: prints PASS and FAIL, asks with "ask: ".
use futures::future::try_join_all;
use futures::TryStreamExt;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::client::Compression;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::statement::Consistency;
use scylla::value::{Counter, CqlDuration, CqlTimeuuid, CqlValue, MaybeUnset};
use scylla::{DeserializeValue, SerializeValue};
use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use std::io::{BufRead, Write};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::Duration;

mod ring;

/// How long something may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(600);

type Outcome = Result<(), Box<dyn Error>>;

fn say(line: &str) {
    println!("{}", line.replace('\n', " "));
    std::io::stdout().flush().unwrap();
}

fn ask(what: &str) {
    say(&format!("ask: {what}"));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).unwrap();
    assert_eq!(answer, "done\n");
}

async fn check<F: Future<Output = Outcome>>(prefix: &str, name: &str, body: F) {
    match tokio::time::timeout(PATIENCE, body).await {
        Ok(Ok(())) => say(&format!("PASS {prefix}{name}")),
        Ok(Err(error)) => say(&format!("FAIL {prefix}{name}: {error}")),
        Err(_) => say(&format!("FAIL {prefix}{name}: no end after {PATIENCE:?}")),
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(left: T, right: T) -> Outcome {
    if left == right {
        Ok(())
    } else {
        Err(format!("{left:?} is not {right:?}").into())
    }
}

async fn connect(compression: Option<Compression>) -> Result<Session, Box<dyn Error>> {
    let node = format!("{}:{}", std::env::var("HOST")?, std::env::var("PORT")?);
    Ok(SessionBuilder::new()
        .known_node(node)
        .compression(compression)
        .connection_timeout(Duration::from_secs(20))
        .build()
        .await?)
}

async fn run(session: &Session, text: &str) -> Outcome {
    session.query_unpaged(text, &[]).await?;
    Ok(())
}

async fn schema(session: &Session) -> Outcome {
    run(
        session,
        "CREATE KEYSPACE IF NOT EXISTS interop WITH replication = \
         {'class': 'SimpleStrategy', 'replication_factor': 1}",
    )
    .await?;
    session.use_keyspace("interop", false).await?;
    for text in [
        "CREATE TYPE IF NOT EXISTS address (street text, zip int)",
        "CREATE TABLE IF NOT EXISTS kv (k text PRIMARY KEY, v int)",
        "CREATE TABLE IF NOT EXISTS wide (p int, c int, v text, PRIMARY KEY (p, c))",
        "CREATE TABLE IF NOT EXISTS counts (k text PRIMARY KEY, n counter)",
        "CREATE TABLE IF NOT EXISTS types (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, \
         e double, f float, g inet, h int, i smallint, j tinyint, l text, m timeuuid, \
         n list<int>, o set<text>, p map<text, bigint>, q tuple<int, text>, r frozen<address>, \
         s duration, t date, u time, v timestamp, w varint, x decimal)",
    ] {
        run(session, text).await?;
    }
    session.await_schema_agreement().await?;
    Ok(())
}

#[derive(SerializeValue, DeserializeValue, PartialEq, Debug, Clone)]
struct Address {
    street: String,
    zip: i32,
}

async fn one<T>(session: &Session, column: &str, value: T) -> Outcome
where
    T: scylla::serialize::value::SerializeValue
        + for<'a, 'b> scylla::deserialize::value::DeserializeValue<'a, 'b>
        + PartialEq
        + std::fmt::Debug
        + Clone,
{
    let write = format!("INSERT INTO types (k, {column}) VALUES (1, ?)");
    let read = format!("SELECT {column} FROM types WHERE k = 1");
    let write = session.prepare(write).await?;
    session.execute_unpaged(&write, (value.clone(),)).await?;
    let rows = session.query_unpaged(read, &[]).await?.into_rows_result()?;
    for row in rows.rows::<(T,)>()? {
        equal(row?.0, value.clone()).map_err(|error| format!("{column}: {error}"))?;
    }
    session.execute_unpaged(&write, (None::<T>,)).await?;
    Ok(())
}

async fn types(session: &Session) -> Outcome {
    one(session, "a", "plain".to_string()).await?;
    one(session, "b", i64::MIN).await?;
    one(session, "c", vec![7u8; 100_000]).await?;
    one(session, "d", true).await?;
    one(session, "e", -1.5e300f64).await?;
    one(session, "f", 0.5f32).await?;
    one(session, "g", "2001:db8::1".parse::<IpAddr>()?).await?;
    one(session, "h", i32::MIN).await?;
    one(session, "i", i16::MIN).await?;
    one(session, "j", i8::MIN).await?;
    one(session, "l", "schöner Text 漢字 😀".to_string()).await?;
    one(
        session,
        "m",
        "550e8400-e29b-11d4-a716-446655440000".parse::<CqlTimeuuid>()?,
    )
    .await?;
    one(session, "n", vec![3, 1, 2]).await?;
    one(session, "o", vec!["a".to_string(), "b".to_string()]).await?;
    one(session, "p", HashMap::from([("one".to_string(), 1i64)])).await?;
    one(session, "q", (1, "one".to_string())).await?;
    one(
        session,
        "r",
        Address {
            street: "Road".to_string(),
            zip: 7,
        },
    )
    .await?;
    one(
        session,
        "s",
        CqlDuration {
            months: 1,
            days: 2,
            nanoseconds: 3,
        },
    )
    .await?;
    one(session, "t", scylla::value::CqlDate(1 << 31)).await?;
    one(session, "u", scylla::value::CqlTime(86_399_999_999_999)).await?;
    one(session, "v", scylla::value::CqlTimestamp(-1)).await?;
    one(
        session,
        "w",
        scylla::value::CqlVarint::from_signed_bytes_be(vec![0x80, 1, 2, 3, 4, 5, 6, 7, 8]),
    )
    .await?;
    one(
        session,
        "x",
        scylla::value::CqlDecimal::from_signed_be_bytes_and_exponent(vec![0x80, 1, 2], 18),
    )
    .await
}

async fn prepared(session: &Session) -> Outcome {
    let write = session
        .prepare("INSERT INTO kv (k, v) VALUES (:key, :value)")
        .await?;
    session.execute_unpaged(&write, ("p", 1)).await?;
    session
        .execute_unpaged(&write, ("p", MaybeUnset::<i32>::Unset))
        .await?;
    let read = session.prepare("SELECT v FROM kv WHERE k = ?").await?;
    let rows = session
        .execute_unpaged(&read, ("p",))
        .await?
        .into_rows_result()?;
    equal(rows.single_row::<(i32,)>()?.0, 1)?;
    run(session, "DROP TABLE IF EXISTS altered").await?;
    run(session, "CREATE TABLE altered (k int PRIMARY KEY, a int)").await?;
    let read = session
        .prepare("SELECT k, a FROM altered WHERE k = 1")
        .await?;
    let write = session
        .prepare("INSERT INTO altered (k, a) VALUES (1, ?)")
        .await?;
    run(session, "ALTER TABLE altered ADD b text").await?;
    session.execute_unpaged(&write, (5,)).await?;
    let rows = session
        .execute_unpaged(&read, &[])
        .await?
        .into_rows_result()?;
    equal(rows.single_row::<(i32, i32)>()?, (1, 5))
}

async fn paging(session: &Session) -> Outcome {
    run(session, "TRUNCATE wide").await?;
    let write = session
        .prepare("INSERT INTO wide (p, c, v) VALUES (1, ?, 'v')")
        .await?;
    try_join_all((0..500).map(|c| session.execute_unpaged(&write, (c,)))).await?;
    let mut read = session.prepare("SELECT c FROM wide WHERE p = 1").await?;
    read.set_page_size(37);
    let got: Vec<(i32,)> = session
        .execute_iter(read.clone(), &[])
        .await?
        .rows_stream::<(i32,)>()?
        .try_collect()
        .await?;
    equal(got, (0..500).map(|c| (c,)).collect())?;
    read.set_page_size(100);
    let (mut state, mut total, mut pages) = (PagingState::start(), 0, 0);
    loop {
        let (page, next): (_, PagingStateResponse) =
            session.execute_single_page(&read, &[], state).await?;
        total += page.into_rows_result()?.rows_num();
        pages += 1;
        match next.into_paging_control_flow() {
            ControlFlow::Break(()) => break,
            ControlFlow::Continue(next) => state = next,
        }
    }
    equal(total, 500)?;
    equal((5..=6).contains(&pages), true)
}

async fn batches(session: &Session) -> Outcome {
    let write = session
        .prepare("INSERT INTO wide (p, c, v) VALUES (5, ?, 'b')")
        .await?;
    let mut batch = Batch::new(BatchType::Logged);
    batch.append_statement(write);
    batch.append_statement("INSERT INTO wide (p, c, v) VALUES (5, 2, 'b')");
    session.batch(&batch, ((1,), ())).await?;
    let rows = session
        .query_unpaged("SELECT c FROM wide WHERE p = 5", &[])
        .await?;
    equal(rows.into_rows_result()?.rows_num(), 2)?;
    run(session, "TRUNCATE counts").await?;
    let add = session
        .prepare("UPDATE counts SET n = n + ? WHERE k = 'x'")
        .await?;
    let mut batch = Batch::new(BatchType::Counter);
    for _ in 0..10 {
        batch.append_statement(add.clone());
    }
    session.batch(&batch, vec![(Counter(2),); 10]).await?;
    session.execute_unpaged(&add, (Counter(-5),)).await?;
    let rows = session
        .query_unpaged("SELECT n FROM counts", &[])
        .await?
        .into_rows_result()?;
    equal(rows.single_row::<(Counter,)>()?.0 .0, 15)
}

async fn conditional(session: &Session) -> Outcome {
    run(session, "DELETE FROM kv WHERE k = 'lwt'").await?;
    for expected in [true, false] {
        let rows = session
            .query_unpaged("INSERT INTO kv (k, v) VALUES ('lwt', 1) IF NOT EXISTS", &[])
            .await?
            .into_rows_result()?;
        let row = rows.single_row::<scylla::value::Row>()?;
        equal(row.columns[0].clone(), Some(CqlValue::Boolean(expected)))?;
    }
    Ok(())
}

async fn concurrent(session: &Session) -> Outcome {
    let write = session
        .prepare("INSERT INTO kv (k, v) VALUES (?, ?)")
        .await?;
    let read = session.prepare("SELECT v FROM kv WHERE k = ?").await?;
    for round in 0..5 {
        try_join_all((0..1000).map(|at| {
            let write = &write;
            async move {
                session
                    .execute_unpaged(write, (format!("c{at}"), at + round))
                    .await
            }
        }))
        .await?;
        let all = try_join_all((0..1000).map(|at| {
            let read = &read;
            async move { session.execute_unpaged(read, (format!("c{at}"),)).await }
        }))
        .await?;
        for (at, result) in all.into_iter().enumerate() {
            equal(
                result.into_rows_result()?.single_row::<(i32,)>()?.0,
                at as i32 + round,
            )?;
        }
    }
    Ok(())
}

fn cause(error: ExecutionError) -> Option<DbError> {
    match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) => Some(error),
        _ => None,
    }
}

async fn errors(session: &Session) -> Outcome {
    for (text, expected) in [
        ("SELEC", DbError::SyntaxError),
        ("SELECT * FROM nothing", DbError::Invalid),
        ("DROP KEYSPACE system", DbError::Unauthorized),
        (
            "CREATE TABLE kv (k int PRIMARY KEY)",
            DbError::AlreadyExists {
                keyspace: "interop".to_string(),
                table: "kv".to_string(),
            },
        ),
    ] {
        match session.query_unpaged(text, &[]).await {
            Ok(_) => return Err(format!("{text}: no error").into()),
            Err(error) => equal(cause(error), Some(expected))?,
        }
    }
    run(
        session,
        "CREATE KEYSPACE IF NOT EXISTS three WITH replication = \
         {'class': 'SimpleStrategy', 'replication_factor': 3}",
    )
    .await?;
    run(
        session,
        "CREATE TABLE IF NOT EXISTS three.t (k int PRIMARY KEY)",
    )
    .await?;
    let mut statement = Statement::new("INSERT INTO three.t (k) VALUES (1)");
    statement.set_consistency(Consistency::Quorum);
    match session
        .query_unpaged(statement, &[])
        .await
        .err()
        .and_then(cause)
    {
        Some(DbError::Unavailable {
            required: 2,
            alive: 1,
            ..
        }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    run(session, "DROP KEYSPACE three").await
}

async fn tracing(session: &Session) -> Outcome {
    let mut statement = Statement::new("SELECT * FROM kv WHERE k = 'p'");
    statement.set_tracing(true);
    let result = session.query_unpaged(statement, &[]).await?;
    let id = result.tracing_id().ok_or("no id")?;
    let info = session.get_tracing_info(&id).await?;
    equal(info.request, Some("Execute CQL3 query".to_string()))?;
    equal(info.events.len() > 1, true)
}

async fn metadata(session: &Session) -> Outcome {
    session.refresh_metadata().await?;
    let state = session.get_cluster_state();
    let keyspace = state.get_keyspace("interop").ok_or("no keyspace")?;
    let table = keyspace.tables.get("wide").ok_or("no table")?;
    equal(table.partition_key.clone(), vec!["p".to_string()])?;
    equal(table.clustering_key.clone(), vec!["c".to_string()])?;
    equal(keyspace.user_defined_types.contains_key("address"), true)?;
    let node = &state.get_nodes_info()[0];
    equal(node.datacenter.clone(), Some("datacenter1".to_string()))?;
    equal(state.replica_locator().ring().len(), 16)
}

async fn restarts(session: &Session, how: &str) -> Outcome {
    let write = session
        .prepare("INSERT INTO interop.kv (k, v) VALUES (?, ?)")
        .await?;
    let read = session
        .prepare("SELECT v FROM interop.kv WHERE k = ?")
        .await?;
    for at in 0..300 {
        session
            .execute_unpaged(&write, (format!("{how}{at}"), at))
            .await?;
    }
    ask(how);
    let mut tries = 0;
    while session
        .query_unpaged("SELECT key FROM system.local", &[])
        .await
        .is_err()
    {
        tries += 1;
        if tries > 200 {
            return Err("no reconnection".into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for at in 0..300 {
        let rows = session
            .execute_unpaged(&read, (format!("{how}{at}"),))
            .await?
            .into_rows_result()?;
        equal(rows.single_row::<(i32,)>()?.0, at)?;
    }
    Ok(())
}

#[tokio::main]
async fn main() {
    if let Ok(nodes) = std::env::var("NODES") {
        ring::all(&nodes).await;
        return;
    }
    for (name, compression) in [
        ("plain ", None),
        ("lz4 ", Some(Compression::Lz4)),
        ("snappy ", Some(Compression::Snappy)),
    ] {
        let session = match connect(compression).await {
            Ok(session) => session,
            Err(error) => {
                say(&format!("FAIL {name}connect: {error}"));
                continue;
            }
        };
        check(name, "connect and make the schema", schema(&session)).await;
        check(name, "types", types(&session)).await;
        check(name, "prepared, unset, ALTER TABLE", prepared(&session)).await;
        check(name, "paging", paging(&session)).await;
        check(name, "batches and counters", batches(&session)).await;
        check(name, "conditional statements", conditional(&session)).await;
        check(name, "1000 requests in flight", concurrent(&session)).await;
        check(name, "errors", errors(&session)).await;
        check(name, "tracing", tracing(&session)).await;
        check(name, "metadata", metadata(&session)).await;
        if compression.is_none() {
            check(
                name,
                "data and prepared after a restart",
                restarts(&session, "restart"),
            )
            .await;
            check(
                name,
                "data and prepared after kill -9",
                restarts(&session, "kill"),
            )
            .await;
        }
    }
}
