import java.io.PrintStream;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.PreparedStatement;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.TimeZone;

/**
 * Reads relations with JDBC in several time zones. Prints each row as JSON: zone, relation, then its cells as text. Arguments:
 * URL, zones with commas, then per relation its name and the kinds of its columns: name|kind,kind
 */
public class ReadAll {
  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    for (String zone : arguments[1].split(",")) {
      TimeZone.setDefault(TimeZone.getTimeZone(zone)); // the driver opens its sessions in this zone
      try (Connection connection = DriverManager.getConnection(arguments[0])) {
        for (int place = 2; place < arguments.length; place += 1) {
          String[] relation = arguments[place].split("\\|");
          String head = "[" + quoted(zone) + "," + quoted(relation[0]);
          read(connection, relation[0], relation[1].split(","), head, out);
        }
      }
    }
    out.flush();
  }

  static void read(Connection connection, String name, String[] kinds, String head, PrintStream out) throws Exception {
    try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM " + name);
        ResultSet rows = statement.executeQuery()) {
      while (rows.next()) {
        StringBuilder line = new StringBuilder(head);
        for (int column = 1; column <= kinds.length; column += 1)
          line.append(',').append(quoted(written(rows, column, kinds[column - 1])));
        out.println(line.append(']'));
      }
    }
  }

  static String written(ResultSet rows, int column, String kind) throws Exception {
    Object value = rows.getObject(column); // what reporting tools call, whatever the type
    if (value == null) return null;
    switch (kind) {
      case "time":
        rows.getTimestamp(column);
        return rows.getObject(column, OffsetDateTime.class).toInstant().toString();
      case "date":
        rows.getDate(column);
        return rows.getObject(column, LocalDate.class).toString();
      case "list":
        StringBuilder list = new StringBuilder("[");
        for (Object element : (Object[]) rows.getArray(column).getArray())
          list.append(list.length() > 1 ? "," : "").append(quoted((String) element));
        return list.append("]").toString();
      default:
        if (value instanceof java.math.BigDecimal) return ((java.math.BigDecimal) value).toPlainString();
        return value instanceof Boolean ? value.toString() : rows.getString(column);
    }
  }

  static String quoted(String text) {
    if (text == null) return "null";
    StringBuilder json = new StringBuilder("\"");
    for (char unit : text.toCharArray())
      if (unit < ' ' || unit == '"' || unit == '\\') json.append(String.format("\\u%04x", (int) unit));
      else json.append(unit);
    return json.append('"').toString();
  }
}
