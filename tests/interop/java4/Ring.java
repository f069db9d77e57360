// SPDX-License-Identifier: Apache-2.0
// The Java driver 4.x on a ring of two data centers (part_ring.py): what it finds out about the nodes, where requests go,
// and going on while nodes die, hang, join and leave.
import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.config.ProgrammaticDriverConfigLoaderBuilder;
import com.datastax.oss.driver.api.core.cql.*;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.metadata.NodeState;
import com.datastax.oss.driver.api.core.metadata.NodeStateListenerBase;
import com.datastax.oss.driver.api.core.metadata.TokenMap;
import com.datastax.oss.driver.api.core.servererrors.*;
import com.datastax.oss.driver.internal.core.specex.ConstantSpeculativeExecutionPolicy;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

class Ring {
	static final List<String> NODES = List.of(System.getenv("NODES").split(","));
	static final List<String> DC1 = NODES.subList(0, 3), DC2 = NODES.subList(3, 5);
	static final String NEXT = System.getenv("NEXT");

	/** What the driver tells of its nodes, as "up ADDRESS". */
	static class Heard extends NodeStateListenerBase {
		final Queue<String> all = new ConcurrentLinkedQueue<>();

		@Override public void onUp(Node node)
		{
			all.add("up " + address(node));
		}

		@Override public void onDown(Node node)
		{
			all.add("down " + address(node));
		}

		@Override public void onAdd(Node node)
		{
			all.add("add " + address(node));
		}

		@Override public void onRemove(Node node)
		{
			all.add("remove " + address(node));
		}

		void hears(String what) throws Exception
		{
			Interop.until(() -> all.contains(what), what + " (heard " + all + ")");
		}
	}

	static String address(Node node)
	{
		return ((InetSocketAddress)node.getEndPoint().resolve()).getAddress().getHostAddress();
	}

	static CqlSession connect(String datacenter, String contact, Heard heard, boolean isSpeculative)
	{
		Duration minute = Duration.ofMinutes(1);
		ProgrammaticDriverConfigLoaderBuilder options =
		    DriverConfigLoader.programmaticBuilder()
		        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, minute)
		        .withDuration(DefaultDriverOption.CONNECTION_CONNECT_TIMEOUT, minute)
		        .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, minute)
		        .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, minute)
		        .withDuration(DefaultDriverOption.CONTROL_CONNECTION_AGREEMENT_TIMEOUT, minute)
		        .withDuration(DefaultDriverOption.METADATA_SCHEMA_REQUEST_TIMEOUT, minute)
		        .withDuration(DefaultDriverOption.RECONNECTION_BASE_DELAY, Duration.ofMillis(200))
		        .withDuration(DefaultDriverOption.RECONNECTION_MAX_DELAY, Duration.ofSeconds(1))
		        .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "LOCAL_QUORUM")
		        // Connections to the other data center too, for what is sent to a node by name.
		        .withInt(DefaultDriverOption.LOAD_BALANCING_DC_FAILOVER_MAX_NODES_PER_REMOTE_DC, 2);
		if (isSpeculative)
			options.withClass(DefaultDriverOption.SPECULATIVE_EXECUTION_POLICY_CLASS,
			           ConstantSpeculativeExecutionPolicy.class)
			    .withInt(DefaultDriverOption.SPECULATIVE_EXECUTION_MAX, 5)
			    .withDuration(DefaultDriverOption.SPECULATIVE_EXECUTION_DELAY, Duration.ofMillis(200));
		return CqlSession.builder()
		    .addContactPoint(new InetSocketAddress(contact, Interop.PORT))
		    .withLocalDatacenter(datacenter)
		    .withNodeStateListener(heard)
		    .withConfigLoader(options.build())
		    .build();
	}

	static SimpleStatement at(ConsistencyLevel level, String text)
	{
		return SimpleStatement.newInstance(text).setConsistencyLevel(level);
	}

	static Node node(CqlSession session, String address)
	{
		for (Node node : session.getMetadata().getNodes().values())
			if (address(node).equals(address))
				return node;
		return null;
	}

	static TokenMap tokens(CqlSession session)
	{
		return session.getMetadata().getTokenMap().get();
	}

	static Set<String> coordinators(CqlSession session, Statement<?> statement, int times)
	{
		Set<String> found = new TreeSet<>();
		for (int i = 0; i < times; i++)
			found.add(address(session.execute(statement).getExecutionInfo().getCoordinator()));
		return found;
	}

	static void untilCoordinators(CqlSession session, Collection<String> wanted) throws Exception
	{
		Set<String> all = new TreeSet<>(wanted);
		Interop.until(() -> coordinators(session, READ, 60).equals(all), all + " to answer");
	}

	static final SimpleStatement READ = SimpleStatement.newInstance("SELECT v FROM ringj.kv WHERE k = 1");

	static void schema(CqlSession session)
	{
		for (String text : new String[] {
		         "CREATE KEYSPACE IF NOT EXISTS ringj WITH replication = "
		             + "{'class': 'NetworkTopologyStrategy', 'dc1': 3, 'dc2': 2}",
		         "CREATE KEYSPACE IF NOT EXISTS fewj WITH replication = "
		             + "{'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1}",
		         "CREATE TABLE IF NOT EXISTS ringj.kv (k int PRIMARY KEY, v int)",
		         "CREATE TABLE IF NOT EXISTS fewj.kv (k int PRIMARY KEY, v int)",
		         "CREATE TABLE IF NOT EXISTS fewj.wide (p int, c int, PRIMARY KEY (p, c))",
		         "CREATE TABLE IF NOT EXISTS ringj.counts (k int PRIMARY KEY, n counter)"})
			Interop.holds(session.execute(text).getExecutionInfo().isSchemaInAgreement(), text);
		session.execute(at(ConsistencyLevel.ALL, "INSERT INTO ringj.kv (k, v) VALUES (1, 1)"));
	}

	static void discovery(CqlSession session)
	{
		Interop.equal(session.getMetadata().getNodes().size(), 5);
		Set<UUID> ids = new HashSet<>();
		for (int i = 0; i < 5; i++) {
			Node node = node(session, NODES.get(i));
			Interop.equal(node.getDatacenter(), i < 3 ? "dc1" : "dc2");
			Interop.equal(node.getRack(), "r" + (i % 3 + 1));
			Interop.holds(node.getCassandraVersion().toString().startsWith("4.1"), node.getCassandraVersion());
			ids.add(node.getHostId());
		}
		Interop.equal(ids.size(), 5);
		Interop.equal(tokens(session).getTokenRanges().size(), 5 * 16);
		Interop.holds(session.checkSchemaAgreement(), "agreement");
	}

	/** The driver's replicas are those of `nodetool getendpoints`. */
	static void replicas(CqlSession session) throws Exception
	{
		for (String keyspace : new String[] {"ringj", "fewj"}) {
			for (int key = 0; key < 10; key++) {
				Process tool = new ProcessBuilder(System.getenv("NODETOOL"), "-h", NODES.get(key % 5),
				    "getendpoints", keyspace, "kv", "" + key).start();
				Set<String> wanted = new TreeSet<>(
				    List.of(new String(tool.getInputStream().readAllBytes()).trim().split("\\s+")));
				Set<String> found = new TreeSet<>();
				ByteBuffer routing = ByteBuffer.allocate(4).putInt(0, key);
				for (Node node : tokens(session).getReplicas(CqlIdentifier.fromCql(keyspace), routing))
					found.add(address(node));
				Interop.equal(found, wanted);
			}
		}
	}

	static void datacenters(CqlSession session) throws Exception
	{
		untilCoordinators(session, DC1);
		try (CqlSession far = connect("dc2", DC2.get(0), new Heard(), false)) {
			untilCoordinators(far, DC2);
		}
	}

	static void tokenAware(CqlSession session) throws Exception
	{
		PreparedStatement write = session.prepare("INSERT INTO fewj.kv (k, v) VALUES (?, ?)");
		PreparedStatement read = session.prepare("SELECT v FROM fewj.kv WHERE k = ?");
		Set<String> used = new TreeSet<>();
		for (int key = 0; key < 60; key++) {
			BoundStatement bound = write.bind(key, key).setConsistencyLevel(ConsistencyLevel.ALL);
			Set<String> local = new TreeSet<>();
			for (Node node : tokens(session).getReplicas(bound.getRoutingKeyspace(), bound.getRoutingKey()))
				if (node.getDatacenter().equals("dc1"))
					local.add(address(node));
			Interop.equal(local.size(), 1);
			Interop.equal(coordinators(session, bound, 1), local);
			Interop.equal(coordinators(session, read.bind(key), 1), local);
			used.addAll(local);
		}
		Interop.equal(used, new TreeSet<>(DC1));
	}

	/** Each page of a query from another node. */
	static void pages(CqlSession session)
	{
		PreparedStatement write = session.prepare("INSERT INTO fewj.wide (p, c) VALUES (?, ?)");
		for (int i = 0; i < 200; i++)
			session.execute(write.bind(i / 10, i % 10).setConsistencyLevel(ConsistencyLevel.ALL));
		String text = "SELECT p, c FROM fewj.wide";
		List<String> whole = new ArrayList<>(), found = new ArrayList<>();
		for (Row row : session.execute(SimpleStatement.newInstance(text).setPageSize(5000)))
			whole.add(row.getInt(0) + " " + row.getInt(1));
		Interop.equal(whole.size(), 200);
		ByteBuffer state = null;
		int pages = 0;
		do {
			ResultSet result = session.execute(SimpleStatement.newInstance(text).setPageSize(17)
			    .setPagingState(state).setNode(node(session, NODES.get(pages++ % 5))));
			for (int left = result.getAvailableWithoutFetching(); left > 0; left--) {
				Row row = result.one();
				found.add(row.getInt(0) + " " + row.getInt(1));
			}
			state = result.getExecutionInfo().getPagingState();
		} while (state != null);
		Interop.equal(found, whole);
		Interop.holds(pages > 10, pages);
	}

	/** Counters add up and of conditional statements one wins, whichever nodes they go to. */
	static void countersAndConditions(CqlSession session) throws Exception
	{
		long before = count(session);
		List<CompletionStage<AsyncResultSet>> stages = new ArrayList<>();
		for (int i = 0; i < 200; i++)
			stages.add(session.executeAsync(at(ConsistencyLevel.QUORUM,
			    "UPDATE ringj.counts SET n = n + 1 WHERE k = 1").setNode(node(session, NODES.get(i % 5)))));
		for (CompletionStage<AsyncResultSet> stage : stages)
			stage.toCompletableFuture().get(Interop.PATIENCE, TimeUnit.SECONDS);
		Interop.equal(count(session), before + 200);
		session.execute(at(ConsistencyLevel.ALL, "DELETE FROM ringj.kv WHERE k = 2"));
		for (String node : NODES) {
			boolean isFirst = node.equals(NODES.get(0));
			Row row = session.execute(SimpleStatement.newInstance(
			    "INSERT INTO ringj.kv (k, v) VALUES (2, 5) IF NOT EXISTS").setNode(node(session, node))).one();
			Interop.equal(row.getBoolean("[applied]"), isFirst);
			if (!isFirst)
				Interop.equal(row.getInt("v"), 5);
		}
	}

	static long count(CqlSession session)
	{
		Row row = session.execute(at(ConsistencyLevel.ALL, "SELECT n FROM ringj.counts WHERE k = 1")).one();
		return row == null ? 0 : row.getLong(0);
	}

	static void killed(CqlSession session, Heard heard) throws Exception
	{
		String victim = DC1.get(1);
		PreparedStatement read = session.prepare("SELECT v FROM ringj.kv WHERE k = ?");
		heard.all.clear();
		Interop.ask("kill 2");
		heard.hears("down " + victim);
		untilCoordinators(session, List.of(DC1.get(0), DC1.get(2)));
		UnavailableException error = Interop.raises(UnavailableException.class,
		    () -> session.execute(at(ConsistencyLevel.ALL, "SELECT v FROM ringj.kv WHERE k = 1")));
		Interop.equal(error.getRequired() + " " + error.getAlive(), "5 4");
		Interop.holds(session.execute("CREATE TABLE ringj.while_down (k int PRIMARY KEY)")
		                  .getExecutionInfo().isSchemaInAgreement(), "agreement of four");
		Interop.ask("start 2");
		heard.hears("up " + victim);
		untilCoordinators(session, DC1);
		// What was prepared before it died, and the table that it missed.
		Interop.equal(session.execute(read.bind(1).setNode(node(session, victim))).one().getInt(0), 1);
		session.execute(SimpleStatement.newInstance("SELECT * FROM ringj.while_down")
		                    .setNode(node(session, victim)));
		Interop.holds(session.execute("DROP TABLE ringj.while_down").getExecutionInfo()
		                  .isSchemaInAgreement(), "agreement of five");
	}

	static void hangs() throws Exception
	{
		try (CqlSession session = connect("dc1", DC1.get(0), new Heard(), true)) {
			untilCoordinators(session, DC1);
			SimpleStatement read = READ.setIdempotent(true);
			Interop.ask("pause 3");
			try {
				WriteTimeoutException error = Interop.raises(WriteTimeoutException.class,
				    () -> session.execute(at(ConsistencyLevel.ALL, "INSERT INTO ringj.kv (k, v) VALUES (1, 1)")
				                              .setNode(node(session, DC1.get(0)))));
				Interop.equal(error.getBlockFor() + " " + error.getReceived() + " " + error.getWriteType(),
				    "5 4 SIMPLE");
				for (int i = 0; i < 30; i++)
					Interop.equal(session.execute(read).one().getInt(0), 1);
			} finally {
				Interop.ask("resume 3");
			}
			untilCoordinators(session, DC1);
		}
	}

	static void grows(CqlSession session, Heard heard) throws Exception
	{
		String sixth = NODES.get(0).replaceAll("[0-9]+$", NEXT);
		heard.all.clear();
		Interop.ask("add dc1");
		heard.hears("add " + sixth);
		heard.hears("up " + sixth);
		Interop.equal(node(session, sixth).getDatacenter(), "dc1");
		Interop.until(() -> tokens(session).getTokenRanges().size() == 6 * 16, "its tokens");
		List<String> more = new ArrayList<>(DC1);
		more.add(sixth);
		untilCoordinators(session, more);
		Interop.ask("decommission " + NEXT);
		heard.hears("remove " + sixth);
		Interop.until(() -> tokens(session).getTokenRanges().size() == 5 * 16, "its tokens gone");
		untilCoordinators(session, DC1);
	}

	static void run()
	{
		Heard heard = new Heard();
		try (CqlSession session = connect("dc1", DC1.get(0), heard, false)) {
			Interop.check("schema by way of one node", () -> schema(session));
			Interop.check("discovery", () -> discovery(session));
			Interop.check("the token map is the server's", () -> replicas(session));
			Interop.check("requests stay in a data center", () -> datacenters(session));
			Interop.check("requests go to a replica", () -> tokenAware(session));
			Interop.check("pages from another node each", () -> pages(session));
			Interop.check("counters and conditional statements", () -> countersAndConditions(session));
			Interop.check("a node is killed and comes back", () -> killed(session, heard));
			Interop.check("a node hangs", () -> hangs());
			Interop.check("a node joins and leaves", () -> grows(session, heard));
		} catch (Throwable error) {
			Interop.say("FAIL connect: " + error);
		}
	}
}
