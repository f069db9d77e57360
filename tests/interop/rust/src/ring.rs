// SPDX-License-Identifier: Apache-2.0
//! The scylla crate on a ring of two data centers (part_ring.py): what it finds out about the nodes, where requests go, and
//! going on while nodes die, hang, join and leave.
use crate::{ask, cause, check, equal, run, say, Outcome, PATIENCE};
use futures::future::try_join_all;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{DbError, WriteType};
use scylla::policies::load_balancing::{
    DefaultPolicy, NodeIdentifier, SingleTargetLoadBalancingPolicy,
};
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::response::query_result::QueryResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::unprepared::Statement;
use scylla::statement::Consistency;
use scylla::value::Counter;
use std::collections::BTreeSet;
use std::error::Error;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const READ: &str = "SELECT v FROM ringrs.kv WHERE k = 1";

struct Nodes {
    all: Vec<String>,
    port: u16,
}

impl Nodes {
    fn dc1(&self) -> BTreeSet<String> {
        self.all[..3].iter().cloned().collect()
    }

    fn dc2(&self) -> BTreeSet<String> {
        self.all[3..5].iter().cloned().collect()
    }

    /// A statement that one node coordinates, whatever the policy says.
    fn on(&self, at: usize, text: &str) -> Statement {
        let address = SocketAddr::new(self.all[at % 5].parse().unwrap(), self.port);
        let mut statement = Statement::new(text);
        statement.set_load_balancing_policy(Some(SingleTargetLoadBalancingPolicy::new(
            NodeIdentifier::NodeAddress(address),
            None,
        )));
        statement
    }
}

async fn connect(
    nodes: &Nodes,
    datacenter: &str,
    contact: usize,
    speculative: bool,
) -> Result<Session, Box<dyn Error>> {
    let mut profile = ExecutionProfile::builder()
        .request_timeout(Some(PATIENCE))
        .consistency(Consistency::LocalQuorum)
        .load_balancing_policy(
            DefaultPolicy::builder()
                .prefer_datacenter(datacenter.to_string())
                .build(),
        );
    if speculative {
        profile = profile.speculative_execution_policy(Some(Arc::new(
            SimpleSpeculativeExecutionPolicy {
                max_retry_count: 5,
                retry_interval: Duration::from_millis(200),
            },
        )));
    }
    Ok(SessionBuilder::new()
        .known_node(format!("{}:{}", nodes.all[contact], nodes.port))
        .default_execution_profile_handle(profile.build().into_handle())
        .connection_timeout(PATIENCE)
        .schema_agreement_timeout(PATIENCE)
        .build()
        .await?)
}

fn coordinator(result: &QueryResult) -> String {
    result.request_coordinator().node().address.ip().to_string()
}

async fn coordinators(session: &Session) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut found = BTreeSet::new();
    for _ in 0..60 {
        found.insert(coordinator(&session.query_unpaged(READ, &[]).await?));
    }
    Ok(found)
}

async fn until_coordinators(session: &Session, wanted: &BTreeSet<String>) -> Outcome {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = coordinators(session).await?;
        if found == *wanted {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("{found:?} answered, not {wanted:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn at(level: Consistency, text: &str) -> Statement {
    let mut statement = Statement::new(text);
    statement.set_consistency(level);
    statement
}

async fn number(session: &Session, statement: impl Into<Statement>) -> Result<i32, Box<dyn Error>> {
    let rows = session
        .query_unpaged(statement, &[])
        .await?
        .into_rows_result()?;
    Ok(rows.single_row::<(i32,)>()?.0)
}

async fn schema(session: &Session) -> Outcome {
    for text in [
        "CREATE KEYSPACE IF NOT EXISTS ringrs WITH replication = \
         {'class': 'NetworkTopologyStrategy', 'dc1': 3, 'dc2': 2}",
        "CREATE KEYSPACE IF NOT EXISTS fewrs WITH replication = \
         {'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1}",
        "CREATE TABLE IF NOT EXISTS ringrs.kv (k int PRIMARY KEY, v int)",
        "CREATE TABLE IF NOT EXISTS fewrs.kv (k int PRIMARY KEY, v int)",
        "CREATE TABLE IF NOT EXISTS fewrs.wide (p int, c int, PRIMARY KEY (p, c))",
        "CREATE TABLE IF NOT EXISTS ringrs.counts (k int PRIMARY KEY, n counter)",
    ] {
        run(session, text).await?;
    }
    session.await_schema_agreement().await?;
    session.refresh_metadata().await?;
    let write = "INSERT INTO ringrs.kv (k, v) VALUES (1, 1)";
    session
        .query_unpaged(at(Consistency::All, write), &[])
        .await?;
    Ok(())
}

async fn discovery(session: &Session, nodes: &Nodes) -> Outcome {
    let state = session.get_cluster_state();
    equal(state.get_nodes_info().len(), 5)?;
    for node in state.get_nodes_info() {
        let address = node.address.ip().to_string();
        let place = nodes.all.iter().position(|one| *one == address);
        let place = place.ok_or_else(|| format!("a node {address}"))?;
        let datacenter = if place < 3 { "dc1" } else { "dc2" };
        equal(node.datacenter.as_deref(), Some(datacenter))?;
        equal(node.rack.clone(), Some(format!("r{}", place % 3 + 1)))?;
    }
    equal(state.replica_locator().ring().len(), 5 * 16)
}

/// The driver's replicas are those of `nodetool getendpoints`.
async fn replicas(session: &Session, nodes: &Nodes) -> Outcome {
    let tool = std::env::var("NODETOOL")?;
    let state = session.get_cluster_state();
    for keyspace in ["ringrs", "fewrs"] {
        for key in 0..10 {
            let done = Command::new(&tool)
                .args(["-h", &nodes.all[key % 5], "getendpoints", keyspace, "kv"])
                .arg(key.to_string())
                .output()?;
            let text = String::from_utf8(done.stdout)?;
            let wanted: BTreeSet<String> = text.split_whitespace().map(str::to_string).collect();
            let found = state.get_endpoints(keyspace, "kv", &(key as i32,))?;
            let found = found.iter().map(|(node, _)| node.address.ip().to_string());
            equal(found.collect::<BTreeSet<_>>(), wanted)?;
        }
    }
    Ok(())
}

async fn datacenters(session: &Session, nodes: &Nodes) -> Outcome {
    until_coordinators(session, &nodes.dc1()).await?;
    let far = connect(nodes, "dc2", 3, false).await?;
    until_coordinators(&far, &nodes.dc2()).await
}

async fn token_aware(session: &Session, nodes: &Nodes) -> Outcome {
    let mut write = session
        .prepare("INSERT INTO fewrs.kv (k, v) VALUES (?, ?)")
        .await?;
    write.set_consistency(Consistency::All);
    let read = session
        .prepare("SELECT v FROM fewrs.kv WHERE k = ?")
        .await?;
    let mut used = BTreeSet::new();
    for key in 0..60 {
        let state = session.get_cluster_state();
        let owners = state.get_endpoints("fewrs", "kv", &(key,))?;
        let mut local = owners
            .iter()
            .filter(|(node, _)| node.datacenter.as_deref() == Some("dc1"));
        let local = local.next().ok_or("no replica in dc1")?.0.address.ip();
        let result = session.execute_unpaged(&write, (key, key)).await?;
        equal(coordinator(&result), local.to_string())?;
        let result = session.execute_unpaged(&read, (key,)).await?;
        equal(coordinator(&result), local.to_string())?;
        equal(result.into_rows_result()?.single_row::<(i32,)>()?.0, key)?;
        used.insert(local.to_string());
    }
    equal(used, nodes.dc1())
}

/// Each page of a query from another node.
async fn pages(session: &Session, nodes: &Nodes) -> Outcome {
    let mut write = session
        .prepare("INSERT INTO fewrs.wide (p, c) VALUES (?, ?)")
        .await?;
    write.set_consistency(Consistency::All);
    try_join_all((0..200).map(|at| session.execute_unpaged(&write, (at / 10, at % 10)))).await?;
    let text = "SELECT p, c FROM fewrs.wide";
    let whole = session.query_unpaged(text, &[]).await?.into_rows_result()?;
    let whole: Vec<(i32, i32)> = whole.rows()?.collect::<Result<_, _>>()?;
    equal(whole.len(), 200)?;
    let mut found: Vec<(i32, i32)> = Vec::new();
    let (mut state, mut count) = (PagingState::start(), 0);
    loop {
        let mut statement = nodes.on(count, text);
        statement.set_page_size(17);
        let (page, next): (_, PagingStateResponse) =
            session.query_single_page(statement, &[], state).await?;
        let page = page.into_rows_result()?;
        for row in page.rows::<(i32, i32)>()? {
            found.push(row?);
        }
        count += 1;
        match next.into_paging_control_flow() {
            ControlFlow::Break(()) => break,
            ControlFlow::Continue(next) => state = next,
        }
    }
    equal(found, whole)?;
    equal(count > 10, true)
}

async fn counters_and_conditions(session: &Session, nodes: &Nodes) -> Outcome {
    let before = counted(session).await?;
    try_join_all((0..200).map(|at| {
        let mut add = nodes.on(at, "UPDATE ringrs.counts SET n = n + 1 WHERE k = 1");
        add.set_consistency(Consistency::Quorum);
        session.query_unpaged(add, &[])
    }))
    .await?;
    equal(counted(session).await?, before + 200)?;
    let delete = at(Consistency::All, "DELETE FROM ringrs.kv WHERE k = 2");
    session.query_unpaged(delete, &[]).await?;
    for node in 0..5 {
        let insert = nodes.on(
            node,
            "INSERT INTO ringrs.kv (k, v) VALUES (2, 5) IF NOT EXISTS",
        );
        let rows = session
            .query_unpaged(insert, &[])
            .await?
            .into_rows_result()?;
        // The first answer has no row to show.
        let is_applied = if rows.column_specs().len() == 1 {
            rows.single_row::<(bool,)>()?.0
        } else {
            let (is_applied, _, v) = rows.single_row::<(bool, Option<i32>, Option<i32>)>()?;
            equal(v, if node == 0 { None } else { Some(5) })?;
            is_applied
        };
        equal(is_applied, node == 0)?;
    }
    Ok(())
}

async fn counted(session: &Session) -> Result<i64, Box<dyn Error>> {
    let read = at(Consistency::All, "SELECT n FROM ringrs.counts WHERE k = 1");
    let rows = session.query_unpaged(read, &[]).await?.into_rows_result()?;
    let row = rows.maybe_first_row::<(Counter,)>()?;
    Ok(row.map_or(0, |row| row.0 .0))
}

async fn killed(session: &Session, nodes: &Nodes) -> Outcome {
    let mut rest = nodes.dc1();
    rest.remove(&nodes.all[1]);
    ask("kill 2");
    until_coordinators(session, &rest).await?;
    match session
        .query_unpaged(at(Consistency::All, READ), &[])
        .await
        .err()
        .and_then(cause)
    {
        Some(DbError::Unavailable {
            required: 5,
            alive: 4,
            ..
        }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    run(
        session,
        "CREATE TABLE ringrs.while_down (k int PRIMARY KEY)",
    )
    .await?;
    ask("start 2");
    until_coordinators(session, &nodes.dc1()).await?;
    // What it missed is there.
    session.await_schema_agreement().await?;
    session
        .query_unpaged(nodes.on(1, "SELECT * FROM ringrs.while_down"), &[])
        .await?;
    run(session, "DROP TABLE ringrs.while_down").await
}

async fn hangs(nodes: &Nodes) -> Outcome {
    let session = connect(nodes, "dc1", 0, true).await?;
    until_coordinators(&session, &nodes.dc1()).await?;
    ask("pause 3");
    let outcome = beside_one_that_hangs(&session, nodes).await;
    ask("resume 3");
    outcome?;
    until_coordinators(&session, &nodes.dc1()).await
}

async fn beside_one_that_hangs(session: &Session, nodes: &Nodes) -> Outcome {
    let mut write = nodes.on(0, "INSERT INTO ringrs.kv (k, v) VALUES (1, 1)");
    write.set_consistency(Consistency::All);
    match session
        .query_unpaged(write, &[])
        .await
        .err()
        .and_then(cause)
    {
        Some(DbError::WriteTimeout {
            required: 5,
            received: 4,
            write_type: WriteType::Simple,
            ..
        }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    let mut read = Statement::new(READ);
    read.set_is_idempotent(true);
    for _ in 0..30 {
        equal(number(session, read.clone()).await?, 1)?;
    }
    Ok(())
}

async fn grows(session: &Session, nodes: &Nodes) -> Outcome {
    let next = std::env::var("NEXT")?;
    let prefix = nodes.all[0].rsplit_once('.').ok_or("an address")?.0;
    ask("add dc1");
    let mut more = nodes.dc1();
    more.insert(format!("{prefix}.{next}"));
    until_coordinators(session, &more).await?;
    equal(
        session.get_cluster_state().replica_locator().ring().len(),
        6 * 16,
    )?;
    ask(&format!("decommission {next}"));
    until_coordinators(session, &nodes.dc1()).await?;
    session.refresh_metadata().await?;
    equal(
        session.get_cluster_state().replica_locator().ring().len(),
        5 * 16,
    )
}

pub async fn all(list: &str) {
    let nodes = Nodes {
        all: list.split(',').map(str::to_string).collect(),
        port: std::env::var("PORT").unwrap().parse().unwrap(),
    };
    let session = match connect(&nodes, "dc1", 0, false).await {
        Ok(session) => session,
        Err(error) => return say(&format!("FAIL connect: {error}")),
    };
    check("", "schema by way of one node", schema(&session)).await;
    check("", "discovery", discovery(&session, &nodes)).await;
    check(
        "",
        "the token map is the server's",
        replicas(&session, &nodes),
    )
    .await;
    check(
        "",
        "requests stay in a data center",
        datacenters(&session, &nodes),
    )
    .await;
    check(
        "",
        "requests go to a replica",
        token_aware(&session, &nodes),
    )
    .await;
    check("", "pages from another node each", pages(&session, &nodes)).await;
    let body = counters_and_conditions(&session, &nodes);
    check("", "counters and conditional statements", body).await;
    check(
        "",
        "a node is killed and comes back",
        killed(&session, &nodes),
    )
    .await;
    check("", "a node hangs", hangs(&nodes)).await;
    check("", "a node joins and leaves", grows(&session, &nodes)).await;
}
