// SPDX-License-Identifier: Apache-2.0
// The Java driver 4.x. A program of tests/interop/run: prints PASS and FAIL, asks with "ask: ".
import com.datastax.oss.driver.api.core.AllNodesFailedException;
import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.config.ProgrammaticDriverConfigLoaderBuilder;
import com.datastax.oss.driver.api.core.cql.*;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.data.TupleValue;
import com.datastax.oss.driver.api.core.data.UdtValue;
import com.datastax.oss.driver.api.core.metadata.schema.KeyspaceMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.servererrors.*;
import com.datastax.oss.driver.api.core.type.DataType;
import com.datastax.oss.driver.api.core.type.TupleType;
import com.datastax.oss.driver.api.core.type.UserDefinedType;
import com.datastax.oss.driver.api.core.type.codec.TypeCodec;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.*;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

public class Interop {
	interface Body {
		void run() throws Exception;
	}

	static final String HOST = System.getenv("HOST");
	static final int PORT = Integer.parseInt(System.getenv("PORT"));
	// Seconds that something may take which has to happen.
	static final int PATIENCE = Integer.parseInt(System.getenv().getOrDefault("PATIENCE", "180"));
	static final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
	static String prefix = "";

	static void say(String line)
	{
		System.out.println(line.replace('\n', ' '));
		System.out.flush();
	}

	static void ask(String what) throws Exception
	{
		say("ask: " + what);
		String answer = in.readLine();
		if (!"done".equals(answer))
			throw new Exception(answer);
	}

	static void check(String name, Body body)
	{
		try {
			body.run();
			say("PASS " + prefix + name);
		} catch (Throwable error) {
			StringBuilder where = new StringBuilder();
			for (StackTraceElement at : error.getStackTrace())
				if (List.of("Interop.java", "Ring.java").contains(String.valueOf(at.getFileName())))
					where.append(" line ").append(at.getLineNumber());
			say("FAIL " + prefix + name + ": " + error + where);
		}
	}

	static void equal(Object left, Object right)
	{
		if (!Objects.equals(left, right))
			throw new AssertionError(left + " is not " + right);
	}

	static void holds(boolean condition, Object what)
	{
		if (!condition)
			throw new AssertionError(String.valueOf(what));
	}

	static <T extends Throwable> T raises(Class<T> kind, Body body)
	{
		try {
			body.run();
		} catch (Throwable caught) {
			Throwable error = caught;
			// What no node could do, though there is only one.
			if (error instanceof AllNodesFailedException)
				error = ((AllNodesFailedException)error).getAllErrors().values().iterator()
				            .next().get(0);
			if (kind.isInstance(error))
				return kind.cast(error);
			throw new AssertionError(error + " is no " + kind.getSimpleName(), error);
		}
		throw new AssertionError("no " + kind.getSimpleName());
	}

	static void until(BooleanSupplier condition, String what) throws Exception
	{
		long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
		while (!condition.getAsBoolean()) {
			holds(System.nanoTime() < end, what + " did not happen");
			Thread.sleep(50);
		}
	}

	static CqlSession connect(String version, String compression)
	{
		ProgrammaticDriverConfigLoaderBuilder options = DriverConfigLoader.programmaticBuilder()
		    .withString(DefaultDriverOption.PROTOCOL_COMPRESSION, compression)
		    .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(30))
		    .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(20))
		    .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, Duration.ofSeconds(20))
		    // A trace is written after its answer, here as there.
		    .withInt(DefaultDriverOption.REQUEST_TRACE_ATTEMPTS, 1000)
		    .withDuration(DefaultDriverOption.REQUEST_TRACE_INTERVAL, Duration.ofMillis(20))
		    .withDuration(DefaultDriverOption.RECONNECTION_BASE_DELAY, Duration.ofMillis(200))
		    .withDuration(DefaultDriverOption.RECONNECTION_MAX_DELAY, Duration.ofSeconds(1));
		if (version != null)
			options.withString(DefaultDriverOption.PROTOCOL_VERSION, version);
		return CqlSession.builder()
		    .addContactPoint(new InetSocketAddress(HOST, PORT))
		    .withLocalDatacenter("datacenter1")
		    .withConfigLoader(options.build())
		    .build();
	}

	static void schema(CqlSession session)
	{
		session.execute("CREATE KEYSPACE IF NOT EXISTS interop WITH replication = "
		    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
		session.execute("USE interop");
		session.execute("CREATE TYPE IF NOT EXISTS address (street text, zip int, tags set<text>)");
		session.execute("CREATE TABLE IF NOT EXISTS kv (k text PRIMARY KEY, v int)");
		session.execute("CREATE TABLE IF NOT EXISTS wide (p int, c int, v text, s int static, "
		    + "PRIMARY KEY (p, c))");
		session.execute("CREATE TABLE IF NOT EXISTS counts (k text PRIMARY KEY, n counter)");
		StringBuilder columns = new StringBuilder();
		int at = 0;
		for (String type : TYPES)
			columns.append(", c").append(at++).append(' ').append(type);
		session.execute("CREATE TABLE IF NOT EXISTS types (k int PRIMARY KEY" + columns + ")");
	}

	static final String[] TYPES = {"ascii", "bigint", "blob", "boolean", "date", "decimal", "double",
	    "duration", "float", "inet", "int", "smallint", "text", "time", "timestamp", "timeuuid",
	    "tinyint", "uuid", "varint", "list<int>", "set<text>", "map<text, bigint>",
	    "frozen<list<frozen<set<int>>>>", "tuple<int, text>", "frozen<address>",
	    "map<int, frozen<address>>"};

	static void types(CqlSession session) throws Exception
	{
		TupleType tuple = (TupleType)column(session, 23);
		UserDefinedType address = (UserDefinedType)column(session, 24);
		TupleValue pair = tuple.newValue(1, "one");
		UdtValue place = address.newValue("Road", 7, new HashSet<>(List.of("a", "b")));
		UdtValue half = address.newValue().setInt("zip", 9);
		byte[] big = new byte[100000];
		Object[] values = {"ascii", Long.MIN_VALUE, ByteBuffer.wrap(big), true,
		    LocalDate.of(1969, 7, 20), new BigDecimal("-123456789.000000000000000001"), -1.5e300,
		    CqlDuration.newInstance(1, 2, 3), 0.5f, InetAddress.getByName("2001:db8::1"),
		    Integer.MIN_VALUE, (short)-32768, "schöner Text 漢字 😀",
		    LocalTime.of(23, 59, 59, 999999999), Instant.ofEpochMilli(-1),
		    UUID.fromString("550e8400-e29b-11d4-a716-446655440000"), (byte)-128, new UUID(1, 2),
		    BigInteger.ONE.shiftLeft(200).negate(), List.of(3, 1, 2), new HashSet<>(List.of("x", "ä")),
		    Map.of("one", 1L), List.of(Set.of(1), Set.of(2)), pair, place, Map.of(1, place, 2, half)};
		equal(values.length, TYPES.length);
		boolean isOld = session.getContext().getProtocolVersion().getCode() < 4;
		for (int i = 0; i < TYPES.length; i++) {
			// To protocol v3 these are custom types, for which the driver has no codec.
			if (isOld && List.of("date", "time", "smallint", "tinyint").contains(TYPES[i]))
				continue;
			PreparedStatement write =
			    session.prepare("INSERT INTO types (k, c" + i + ") VALUES (1, ?)");
			session.execute(write.bind(values[i]));
			Row row = session.execute("SELECT c" + i + " FROM types WHERE k = 1").one();
			Object got = row.getObject(0);
			if (values[i] instanceof Map && i == 25) {
				UdtValue one = (UdtValue)((Map<?, ?>)got).get(2);
				equal(one.getInt("zip"), 9);
				equal(one.getString("street"), null);
			} else {
				equal(got, values[i]);
			}
			// The driver's text of the value, read by the server.
			DataType type = row.getColumnDefinitions().get(0).getType();
			TypeCodec<Object> codec = row.codecRegistry().codecFor(type);
			session.execute("INSERT INTO types (k, c" + i + ") VALUES (2, "
			    + codec.format(row.getObject(0)) + ")");
			if (i != 25)
				equal(session.execute("SELECT c" + i + " FROM types WHERE k = 2").one()
				          .getObject(0), values[i]);
			session.execute(write.bind((Object)null));
			holds(session.execute("SELECT c" + i + " FROM types WHERE k = 1").one().isNull(0),
			    TYPES[i]);
			session.execute("INSERT INTO types (k) VALUES (1)");
		}
	}

	static DataType column(CqlSession session, int at)
	{
		return session.refreshSchema().getKeyspace("interop").get().getTable("types").get()
		    .getColumn("c" + at).get().getType();
	}

	static void metadata(CqlSession session)
	{
		KeyspaceMetadata keyspace = session.refreshSchema().getKeyspace("interop").get();
		TableMetadata table = keyspace.getTable("wide").get();
		equal(table.getPrimaryKey().size(), 2);
		holds(table.getColumn("s").get().isStatic(), "static");
		holds(table.describe(false).contains("PRIMARY KEY (\"p\", \"c\")")
		    || table.describe(false).contains("PRIMARY KEY (p, c)"), table.describe(false));
		holds(keyspace.getUserDefinedType("address").get().getFieldNames().size() == 3, "type");
		for (String name : List.of("system", "system_schema", "system_auth", "system_traces",
		         "system_distributed", "system_views", "system_virtual_schema"))
			holds(session.getMetadata().getKeyspace(name).isPresent()
			    || name.startsWith("system"), name);
		equal(session.getMetadata().getNodes().size(), 1);
		com.datastax.oss.driver.api.core.metadata.Node node =
		    session.getMetadata().getNodes().values().iterator().next();
		equal(node.getDatacenter() + "/" + node.getRack(), "datacenter1/rack1");
		equal(node.getCassandraVersion().getMajor(), 4);
		holds(node.getHostId() != null && node.getSchemaVersion() != null, node);
		equal(session.getMetadata().getTokenMap().get().getTokens(node).size(), 16);
		equal(session.getMetadata().getTokenMap().get()
		          .getReplicas("interop", ByteBuffer.wrap(new byte[] {1})).size(), 1);
		holds(session.checkSchemaAgreement(), "agreement");
	}

	static void prepared(CqlSession session)
	{
		PreparedStatement write = session.prepare("INSERT INTO kv (k, v) VALUES (:key, :value)");
		if (session.getContext().getProtocolVersion().getCode() > 3)
			equal(write.getPartitionKeyIndices(), List.of(0));
		equal(write.getVariableDefinitions().get(1).getName().asInternal(), "value");
		session.execute(write.boundStatementBuilder().setString("key", "named").setInt("value", 1)
		                    .build());
		if (session.getContext().getProtocolVersion().getCode() > 3)
			session.execute(write.boundStatementBuilder().setString("key", "named").build());
		equal(session.execute("SELECT v FROM kv WHERE k = 'named'").one().getInt(0), 1);
		session.execute(SimpleStatement.newInstance(
		    "INSERT INTO kv (k, v) VALUES (:k, :v)", Map.of("k", "simple", "v", 2)));
		session.execute(SimpleStatement.newInstance("INSERT INTO kv (k, v) VALUES (?, ?)", "p", 3));
		equal(session.execute("SELECT v FROM kv WHERE k IN ('named', 'simple', 'p')").all().size(), 3);
	}

	static void altered(CqlSession session)
	{
		session.execute("DROP TABLE IF EXISTS altered");
		session.execute("CREATE TABLE altered (k int PRIMARY KEY, a int)");
		PreparedStatement read = session.prepare("SELECT * FROM altered WHERE k = ?");
		PreparedStatement write = session.prepare("INSERT INTO altered (k, a) VALUES (?, ?)");
		session.execute(write.bind(1, 2));
		equal(session.execute(read.bind(1)).one().getColumnDefinitions().size(), 2);
		session.execute("ALTER TABLE altered ADD b text");
		session.execute("INSERT INTO altered (k, b) VALUES (1, 'three')");
		session.execute(write.bind(1, 4));
		Row row = session.execute(read.bind(1)).one();
		equal(row.getInt("a"), 4);
		if (session.getContext().getProtocolVersion().getCode() >= 5) {
			equal(row.getString("b"), "three");
			equal(read.getResultSetDefinitions().size(), 3);
		}
	}

	static void paging(CqlSession session)
	{
		session.execute("TRUNCATE wide");
		PreparedStatement write = session.prepare("INSERT INTO wide (p, c, v) VALUES (?, ?, ?)");
		BatchStatementBuilder batch = BatchStatement.builder(BatchType.UNLOGGED);
		for (int c = 0; c < 500; c++)
			batch.addStatement(write.bind(1, c, "v" + c));
		session.execute(batch.build());
		ResultSet all = session.execute(
		    SimpleStatement.newInstance("SELECT c FROM wide WHERE p = 1").setPageSize(37));
		int expected = 0;
		for (Row row : all)
			equal(row.getInt(0), expected++);
		equal(expected, 500);
		Statement<?> statement = SimpleStatement.newInstance(
		    "SELECT c FROM wide WHERE p = 1 ORDER BY c DESC").setPageSize(100);
		int pages = 0;
		for (;;) {
			ResultSet page = session.execute(statement);
			int left = page.getAvailableWithoutFetching();
			pages += left > 0 ? 1 : 0;
			PagingState state = page.getExecutionInfo().getSafePagingState();
			if (state == null)
				break;
			statement = statement.setPagingState(PagingState.fromBytes(state.toBytes()));
		}
		equal(pages, 5);
		raises(ProtocolError.class, () -> session.execute(SimpleStatement.newInstance(
		    "SELECT c FROM wide").setPagingState(ByteBuffer.wrap(new byte[] {9, 9, 9}))));
	}

	static void batches(CqlSession session)
	{
		PreparedStatement write = session.prepare("INSERT INTO wide (p, c, v) VALUES (?, ?, ?)");
		session.execute(BatchStatement.newInstance(BatchType.LOGGED, write.bind(5, 1, "a"),
		    SimpleStatement.newInstance("INSERT INTO wide (p, c, v) VALUES (5, ?, ?)", 2, "b"),
		    SimpleStatement.newInstance("INSERT INTO kv (k, v) VALUES ('batch', 1)")));
		equal(session.execute("SELECT * FROM wide WHERE p = 5").all().size(), 2);
		session.execute("TRUNCATE counts");
		BatchStatementBuilder counters = BatchStatement.builder(BatchType.COUNTER);
		PreparedStatement add = session.prepare("UPDATE counts SET n = n + ? WHERE k = ?");
		for (int i = 0; i < 10; i++)
			counters.addStatement(add.bind(2L, "x"));
		session.execute(counters.build());
		session.execute(add.bind(-5L, "x"));
		equal(session.execute("SELECT n FROM counts").one().getLong(0), 15L);
	}

	static void conditional(CqlSession session)
	{
		session.execute("DELETE FROM kv WHERE k = 'lwt'");
		String insert = "INSERT INTO kv (k, v) VALUES ('lwt', 1) IF NOT EXISTS";
		holds(session.execute(insert).wasApplied(), "first");
		ResultSet second = session.execute(insert);
		holds(!second.wasApplied(), "second");
		equal(second.one().getInt("v"), 1);
		PreparedStatement update = session.prepare("UPDATE kv SET v = ? WHERE k = 'lwt' IF v = ?");
		holds(!session.execute(update.bind(2, 9)).wasApplied(), "wrong");
		holds(session.execute(update.bind(2, 1).setSerialConsistencyLevel(
		          ConsistencyLevel.LOCAL_SERIAL)).wasApplied(), "right");
		BatchStatement batch = BatchStatement.newInstance(BatchType.LOGGED,
		    SimpleStatement.newInstance("UPDATE kv SET v = 3 WHERE k = 'lwt' IF v = 2"),
		    SimpleStatement.newInstance("DELETE v FROM kv WHERE k = 'lwt' IF v IN (1, 2)"));
		holds(session.execute(batch).wasApplied(), "batch");
		holds(!session.execute(batch).wasApplied(), "batch again");
	}

	static void concurrent(CqlSession session) throws Exception
	{
		PreparedStatement write = session.prepare("INSERT INTO kv (k, v) VALUES (?, ?)");
		PreparedStatement read = session.prepare("SELECT v FROM kv WHERE k = ?");
		for (int round = 0; round < 5; round++) {
			List<CompletionStage<AsyncResultSet>> stages = new ArrayList<>();
			for (int i = 0; i < 1000; i++)
				stages.add(session.executeAsync(write.bind("c" + i, i + round)));
			for (CompletionStage<AsyncResultSet> stage : stages)
				stage.toCompletableFuture().get(30, TimeUnit.SECONDS);
			stages.clear();
			for (int i = 0; i < 1000; i++)
				stages.add(session.executeAsync(read.bind("c" + i)));
			for (int i = 0; i < 1000; i++)
				equal(stages.get(i).toCompletableFuture().get(30, TimeUnit.SECONDS).one()
				          .getInt(0), i + round);
		}
	}

	static void errors(CqlSession session)
	{
		raises(SyntaxError.class, () -> session.execute("SELEC"));
		raises(InvalidQueryException.class, () -> session.execute("SELECT * FROM nothing"));
		raises(InvalidQueryException.class, () -> session.prepare("SELECT nothing FROM kv"));
		raises(AlreadyExistsException.class,
		    () -> session.execute("CREATE TABLE kv (k int PRIMARY KEY)"));
		raises(UnauthorizedException.class, () -> session.execute("DROP KEYSPACE system"));
		raises(InvalidConfigurationInQueryException.class, () -> session.execute(
		    "CREATE KEYSPACE x WITH replication = {'class': 'NoSuchStrategy'}"));
		session.execute("CREATE KEYSPACE IF NOT EXISTS three WITH replication = "
		    + "{'class': 'SimpleStrategy', 'replication_factor': 3}");
		session.execute("CREATE TABLE IF NOT EXISTS three.t (k int PRIMARY KEY)");
		UnavailableException unavailable = raises(UnavailableException.class,
		    () -> session.execute(SimpleStatement.newInstance("INSERT INTO three.t (k) VALUES (1)")
		                              .setConsistencyLevel(ConsistencyLevel.QUORUM)));
		equal(unavailable.getRequired() + "/" + unavailable.getAlive(), "2/1");
		session.execute("DROP KEYSPACE three");
	}

	static void tracing(CqlSession session)
	{
		ResultSet result = session.execute(SimpleStatement.newInstance(
		    "SELECT * FROM kv WHERE k = 'c1'").setTracing(true));
		QueryTrace trace = result.getExecutionInfo().getQueryTrace();
		equal(trace.getRequestType(), "Execute CQL3 query");
		holds(!trace.getEvents().isEmpty() && trace.getDurationMicros() > 0, trace.getEvents());
		equal(trace.getCoordinatorAddress().getAddress().getHostAddress(), HOST);
	}

	static void extras(CqlSession session)
	{
		int version = session.getContext().getProtocolVersion().getCode();
		session.execute(SimpleStatement.newInstance("INSERT INTO kv (k, v) VALUES ('time', 1)")
		                    .setQueryTimestamp(System.currentTimeMillis() * 1000));
		if (version > 3) {
			equal(session.execute(SimpleStatement.newInstance("SELECT * FROM kv WHERE k = 'time'")
			    .setCustomPayload(Map.of("key", ByteBuffer.wrap(new byte[] {1})))).all().size(), 1);
			BatchStatementBuilder batch = BatchStatement.builder(BatchType.UNLOGGED);
			for (int i = 0; i < 20; i++)
				batch.addStatement(SimpleStatement.newInstance(
				    "INSERT INTO wide (p, c, v) VALUES (?, 1, ?)", 1000 + i, "w".repeat(400)));
			holds(!session.execute(batch.build()).getExecutionInfo().getWarnings().isEmpty(),
			    "warnings");
		}
		if (version > 4) {
			equal(session.execute(SimpleStatement.newInstance("SELECT key FROM local")
			    .setKeyspace(CqlIdentifier.fromCql("system"))).one().getString(0), "local");
			session.execute(SimpleStatement.newInstance(
			    "INSERT INTO kv (k, v) VALUES ('ttl', 1) USING TTL 100"));
			int now = (int)(System.currentTimeMillis() / 1000);
			equal(session.execute(SimpleStatement.newInstance(
			          "SELECT * FROM kv WHERE k = 'ttl'").setNowInSeconds(now + 1000)).all().size(), 0);
			equal(session.execute("SELECT * FROM kv WHERE k = 'ttl'").all().size(), 1);
		}
	}

	static void events(CqlSession session, CqlSession other) throws Exception
	{
		session.execute("CREATE KEYSPACE seen WITH replication = "
		    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
		until(() -> other.getMetadata().getKeyspace("seen").isPresent(), "CREATE KEYSPACE");
		session.execute("CREATE TABLE seen.t (k int PRIMARY KEY)");
		until(() -> other.getMetadata().getKeyspace("seen").get().getTable("t").isPresent(),
		    "CREATE TABLE");
		session.execute("ALTER TABLE seen.t ADD v int");
		until(() -> other.getMetadata().getKeyspace("seen").get().getTable("t").get().getColumn("v")
		                .isPresent(), "ALTER TABLE");
		session.execute("CREATE TYPE seen.u (a int)");
		until(() -> other.getMetadata().getKeyspace("seen").get().getUserDefinedType("u").isPresent(),
		    "CREATE TYPE");
		session.execute("DROP TABLE seen.t");
		until(() -> !other.getMetadata().getKeyspace("seen").get().getTable("t").isPresent(),
		    "DROP TABLE");
		session.execute("DROP KEYSPACE seen");
		until(() -> !other.getMetadata().getKeyspace("seen").isPresent(), "DROP KEYSPACE");
	}

	static void restarts(CqlSession session, String how) throws Exception
	{
		PreparedStatement write = session.prepare("INSERT INTO interop.kv (k, v) VALUES (?, ?)");
		PreparedStatement read = session.prepare("SELECT v FROM interop.kv WHERE k = ?");
		for (int i = 0; i < 300; i++)
			session.execute(write.bind(how + i, i));
		ResultSet page = session.execute(
		    SimpleStatement.newInstance("SELECT k FROM interop.kv").setPageSize(10));
		PagingState state = page.getExecutionInfo().getSafePagingState();
		ask(how);
		until(() -> {
			try {
				session.execute("SELECT key FROM system.local");
				return true;
			} catch (RuntimeException error) {
				return false;
			}
		}, "reconnection");
		for (int i = 0; i < 300; i++)
			equal(session.execute(read.bind(how + i)).one().getInt(0), i);
		session.execute(write.bind(how + "again", 1));
		holds(session.execute(SimpleStatement.newInstance("SELECT k FROM interop.kv").setPageSize(10)
		    .setPagingState(state.getRawPagingState())).one() != null, "page");
	}

	public static void main(String[] arguments)
	{
		if (System.getenv("NODES") != null) {
			Ring.run();
			System.exit(0);
		}
		for (String version : new String[] {"V3", "V4", "V5"}) {
			for (String compression : new String[] {"none", "lz4", "snappy"}) {
				if (version.equals("V5") && compression.equals("snappy"))
					continue;
				prefix = version.toLowerCase() + " " + compression + " ";
				try (CqlSession session = connect(version, compression)) {
					check("connect and make the schema", () -> schema(session));
					check("types", () -> types(session));
					check("prepared, named and unset", () -> prepared(session));
					check("prepared and ALTER TABLE", () -> altered(session));
					check("paging", () -> paging(session));
					check("batches and counters", () -> batches(session));
					check("conditional statements", () -> conditional(session));
					check("1000 requests in flight", () -> concurrent(session));
					check("errors", () -> errors(session));
					check("tracing", () -> tracing(session));
					check("timestamps, payload, warnings, keyspaces", () -> extras(session));
				} catch (Throwable error) {
					say("FAIL " + prefix + "connect: " + error);
				}
			}
		}
		prefix = "";
		check("version negotiation", () -> {
			try (CqlSession session = connect(null, "none")) {
				equal(session.getContext().getProtocolVersion().getCode(), 5);
			}
		});
		try (CqlSession session = connect("V5", "lz4"); CqlSession other = connect("V4", "none")) {
			check("schema metadata", () -> metadata(session));
			check("schema events reach another session", () -> events(session, other));
			check("data, prepared and paging state after a restart",
			    () -> restarts(session, "restart"));
			check("data, prepared and paging state after kill -9", () -> restarts(session, "kill"));
			check("schema events after both", () -> events(session, other));
		} catch (Throwable error) {
			say("FAIL connect: " + error);
		}
		System.exit(0);
	}
}
